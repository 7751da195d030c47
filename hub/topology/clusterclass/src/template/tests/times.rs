//! Times: read and written by layouts, and asked for their parts, with what Go gives in UTC.

use super::super::render;

fn rendered(template: &str, layout: &str, moment: &str) -> String {
    let variables = serde_json::json!({"l": layout, "m": moment}).to_string();
    let outcome = render(template, variables.as_bytes());
    match outcome.rendered {
        Some(text) => String::from_utf8_lossy(&text).into_owned(),
        None => "none".to_owned(),
    }
}

#[test]
fn a_time_is_read_by_its_layout() {
    for (layout, moment, shown) in [
        ("2006-01-02", "2024-02-29", "2024-02-29 00:00:00 +0000 UTC"),
        ("2006-01-02", "2023-02-29", "none"),
        (
            "2006-01-02T15:04:05Z07:00",
            "2024-02-29T12:00:00.123456789-08:00",
            "2024-02-29 12:00:00.123456789 -0800 -0800",
        ),
        ("2006-01-02 15:04:05.000", "2024-02-29 23:59:59", "none"),
        (
            "2006-01-02 15:04:05.999",
            "2024-02-29 23:59:59",
            "2024-02-29 23:59:59 +0000 UTC",
        ),
        (
            "January 2, 2006",
            "february 29, 2024",
            "2024-02-29 00:00:00 +0000 UTC",
        ),
        (
            "Mon, 02 Jan 2006 15:04:05 MST",
            "Thu, 29 Feb 2024 12:00:00 GMT+5",
            "2024-02-29 17:00:00 +0500 GMT+5",
        ),
        (
            "Mon, 02 Jan 2006 15:04:05 MST",
            "Thu, 29 Feb 2024 12:00:00 EST",
            "2024-02-29 12:00:00 +0000 EST",
        ),
        (
            "02/01/06 3:04PM",
            "29/02/24 12:04AM",
            "2024-02-29 00:04:00 +0000 UTC",
        ),
        ("02/01/06 3:04PM", "29/02/24 13:04PM", "none"),
        ("2006 __2", "2024  60", "2024-02-29 00:00:00 +0000 UTC"),
        ("2006-002", "2023-366", "none"),
        (
            "-07:00:00 2006",
            "+01:02:03 2024",
            "2024-01-01 00:00:00 +0102 +0102",
        ),
        ("_2006", "_2024", "2024-01-01 00:00:00 +0000 UTC"),
        ("06", "-5", "1995-01-01 00:00:00 +0000 UTC"),
        ("Janx Mond", "Janx Mond", "0000-01-01 00:00:00 +0000 UTC"),
        (
            "15:04 -070000 MST",
            "12:00 +123456 CET",
            "0000-01-01 12:00:00 +1234 CET",
        ),
        ("MST", "ABCDE", "none"),
    ] {
        assert_eq!(
            rendered("{{ mustToDate .l .m }}", layout, moment),
            shown,
            "{layout}: {moment}"
        );
    }
}

/// Zones may have long names, and layouts ask for them often.
#[test]
fn a_time_that_would_be_written_without_an_end_is_an_error() {
    let layout = "MST".repeat(100_000);
    let zone = format!("+{}1", "0".repeat(100_000));
    assert_eq!(
        rendered("{{ (toDate `MST` .m).Format .l }}", &layout, &zone),
        "none"
    );
}

#[test]
fn a_time_is_written_by_its_layout_and_says_what_is_asked() {
    let (layout, moment) = ("2006-01-02T15:04:05Z07:00", "2024-02-29T00:07:09.120+05:30");
    for (asked, shown) in [
        (
            ".Format \"Mon Jan _2 3:4:5.000 PM 2006 __2\"",
            "Thu Feb 29 12:7:9.120 AM 2024  60",
        ),
        (
            ".Format \"Monday 02 January 06 15h pm,999\"",
            "Thursday 29 February 24 00h am,12",
        ),
        (
            ".Format \"Z07:00 -0700 -07 -07:00:00 MST\"",
            "+05:30 +0530 +05 +05:30:00 +0530",
        ),
        (".UTC.Format \"2006-002 15:04 Z0700 MST\"", "2024-059 18:37 Z UTC"),
        (".Weekday", "Thursday"),
        (".YearDay", "60"),
        (".UnixMilli", "1709145429120"),
        (".Nanosecond", "120000000"),
        (".Before (toDate \"2006\" \"2025\")", "true"),
        (".Equal (toDate .l .m).UTC", "true"),
    ] {
        let template = format!("{{{{ (toDate .l .m){asked} }}}}");
        assert_eq!(rendered(&template, layout, moment), shown, "{asked}");
    }
}
