//! Tokens are read as they were written and in no other way; a page has room for what it says.

use proptest::prelude::*;
use shared::model::UnixMillis;

use super::*;

fn token(last: Last) -> PageToken {
    PageToken {
        epoch: Epoch::default().next(UnixMillis(1_000), 7),
        revision: Revision(42),
        question: Question::of(&["State/Get", "", "shop"]),
        last,
    }
}

fn lasts() -> [Last; 5] {
    let east = || ClusterId::new("east").expect("valid");
    let cart = || ServiceKey::new("shop", "cart").expect("valid");
    [
        Last::Member(east()),
        Last::RevokedKey(KeyFingerprint([0xab; 32])),
        Last::Export(east(), cart()),
        Last::Import(cart()),
        Last::Profile(east()),
    ]
}

#[test]
fn a_token_is_text_that_gives_it_back() {
    for last in lasts() {
        let token = token(last);
        assert_eq!(token.to_string().parse(), Ok(token));
    }
    let longest = "a".repeat(63);
    let service = ServiceKey::new(&longest, &longest).expect("valid");
    let longest = PageToken {
        epoch: Epoch {
            created_at: UnixMillis(u64::MAX),
            random: u64::MAX,
        },
        revision: Revision(u64::MAX),
        ..token(Last::Export(ClusterId::new(&longest).expect("valid"), service))
    };
    let text = longest.to_string();
    assert!(text.len() <= PAGE_TOKEN_BYTES_MAX * 3 / 4, "{}", text.len());
    assert_eq!(text.parse(), Ok(longest));
}

#[test]
fn what_is_no_token_is_none() {
    let good = token(Last::Import(ServiceKey::new("shop", "cart").expect("valid"))).to_string();
    assert!(good.parse::<PageToken>().is_ok());
    for bad in [
        String::new(),
        good[1..].to_owned(),
        format!("{good} "),
        format!("{good}:"),
        format!("2{}", &good[1..]),
        good.replace(":42:", ":042:"),
        good.replace(":42:", ":-1:"),
        good.replace("shop", "Shop"),
        good.replace("import/", "imports/"),
        good.replace("/cart", ""),
        good.replace("cart", &"a".repeat(PAGE_TOKEN_BYTES_MAX)),
    ] {
        assert_eq!(bad.parse::<PageToken>(), Err(NoToken), "{bad}");
    }
}

proptest! {
    #[test]
    fn whatever_comes_is_read_or_refused(text in "\\PC{0,80}", cut in 0_usize..120, with in any::<char>()) {
        let _ = text.parse::<PageToken>();
        let good = token(lasts()[2].clone()).to_string();
        let mut bent: Vec<char> = good.chars().collect();
        if let Some(place) = bent.get_mut(cut) {
            *place = with;
        }
        let bent: String = bent.into_iter().collect();
        if let Ok(read) = bent.parse::<PageToken>() {
            prop_assert_eq!(read.to_string(), bent);
        }
    }
}

#[test]
fn questions_differ_by_each_word_and_by_where_it_stands() {
    let questions = [
        Question::of(&["State/Get", "", "shop"]),
        Question::of(&["State/Get", "shop", ""]),
        Question::of(&["State/Get", "", ""]),
        Question::of(&["Membership/List"]),
    ];
    for (index, question) in questions.iter().enumerate() {
        assert!(!questions[..index].contains(question));
    }
    assert_eq!(questions[0], Question::of(&["State/Get", "", "shop"]));
}

#[test]
fn a_page_is_full_by_objects_or_by_bytes_and_the_first_object_always_fits() {
    let taken = |asked| {
        let mut page = Page::of(asked);
        (0..=PAGE_OBJECTS_MAX).take_while(|_| page.takes(1)).count()
    };
    assert_eq!(taken(0), PAGE_OBJECTS_DEFAULT as usize);
    assert_eq!((taken(1), taken(7)), (1, 7));
    assert_eq!(taken(u32::MAX), PAGE_OBJECTS_MAX as usize);
    let half = PAGE_BYTES_MAX / 2 - OBJECT_FRAME_BYTES;
    let mut page = Page::of(0);
    assert!(page.takes(half) && !page.takes(half + 1) && page.takes(half) && !page.takes(0));
    let mut page = Page::of(0);
    assert!(page.takes(2 * PAGE_BYTES_MAX) && !page.takes(0));
}
