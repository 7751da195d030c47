//! Owns: the templates of ClusterClass patches: Go's `text/template` with the texts functions of sprig that give the
//! same result every time, and the rendered text read as YAML 1.1.
//! Never: a clock, a random number, a file; never a panic or an endless loop, whatever a class says. [`limits`] bounds
//! what one template may take.
//!
//! A text goes [`lex`] → [`parse`] → [`exec`] with [`functions`] → [`yaml`].

pub mod cases;
mod cast;
mod exec;
mod floats;
mod functions;
mod json;
mod lex;
pub mod limits;
mod literal;
mod meter;
mod methods;
mod moment;
mod node;
mod numbers;
mod parse;
mod print;
mod quote;
mod runes;
mod signature;
mod value;
mod version;
mod yaml;

#[cfg(test)]
mod tests;

pub(crate) use self::functions::compile as regular_expression;
use self::{limits::MAX_SOURCE, meter::Meter, node::Set, value::Value};

/// At which stage a template failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is no template.
    Parse,
    /// It cannot be carried out with these variables.
    Execute,
    /// The result is no YAML.
    Yaml,
}

impl Stage {
    /// The stage as it is written in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Execute => "execute",
            Self::Yaml => "yaml",
        }
    }
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The stage that failed.
    pub stage: Stage,
    /// One line, with the place in the template as Go writes it.
    pub message: String,
}

/// The result of a template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The text, if there is one; it may be no YAML.
    pub rendered: Option<Vec<u8>>,
    /// The text's first document as JSON, if it has one.
    pub value: Option<String>,
    /// True if the value is `true`, which is what `enabledIf` asks.
    pub enabled_if: bool,
    /// Steps that it took, up to [`limits::MAX_STEPS`].
    pub steps: u64,
    /// Why there is no value.
    pub problem: Option<Problem>,
    /// Probable mistakes that no rule forbids, a line each.
    pub findings: Vec<String>,
}

/// Renders a template with variables, which are a JSON object, and reads the text as YAML.
///
/// The result follows from the arguments alone.
pub fn render(template: &str, variables: &[u8]) -> Outcome {
    let mut outcome = Outcome::default();
    if let Err(problem) = rendered(&mut outcome, template, variables) {
        outcome.problem = Some(problem);
    }
    outcome
}

/// Checks a template independently of variables; returns the functions in it that do not give the same result twice.
pub fn examine(template: &str) -> Result<Vec<&'static str>, Problem> {
    parsed(template).map(|(_, refused)| refused)
}

/// The first document of a file of YAML 1.1, as JSON; `null` if it has none.
pub fn yaml_to_json(text: &[u8]) -> Result<String, String> {
    decoded(&mut Meter::of_a_file(), text)
}

fn decoded(meter: &mut Meter, text: &[u8]) -> Result<String, String> {
    let json = yaml::decode(text).and_then(|value| {
        json::write(meter, &value, json::Style::Escaped)
            .map_err(|failure| failure.message.trim_start_matches("json: ").to_owned())
    });
    match json {
        Ok(json) => Ok(runes::lossy(&json)),
        Err(message) => Err(format!("yaml: {}", one_line(&message))),
    }
}

fn failed(stage: Stage, message: &str) -> Problem {
    Problem {
        stage,
        message: one_line(message),
    }
}

fn parsed(template: &str) -> Result<(Set, Vec<&'static str>), Problem> {
    if template.len() > MAX_SOURCE {
        let message = format!("template: tpl: is longer than {MAX_SOURCE} bytes");
        return Err(failed(Stage::Parse, &message));
    }
    let (set, functions) = parse::parse(template).map_err(|(at, message)| {
        let (line, _) = place(template, at);
        failed(Stage::Parse, &format!("template: tpl:{line}: {message}"))
    })?;
    let refused = functions.iter().filter_map(|name| functions::refused(name));
    Ok((set, refused.collect()))
}

fn rendered(outcome: &mut Outcome, template: &str, variables: &[u8]) -> Result<(), Problem> {
    let (set, refused) = parsed(template)?;
    for name in refused {
        outcome.findings.push(format!(
            "function {name:?} does not give the same result twice: where it is reached the template fails"
        ));
    }
    let mut meter = Meter::default();
    let variables = match json::read(&mut meter, variables) {
        Ok(variables @ Value::Dict(_)) => variables,
        Ok(_) => {
            return Err(failed(Stage::Execute, "the variables are no JSON object"));
        }
        Err(failure) => {
            let message = format!("the variables are no JSON: {}", failure.message);
            return Err(failed(Stage::Execute, &message));
        }
    };
    let done = exec::render(&set, &mut meter, variables);
    outcome.steps = meter.steps();
    for at in done.missing {
        let (line, column) = place(template, at);
        outcome
            .findings
            .push(format!("template: tpl:{line}:{column}: writes <no value>"));
    }
    let text = done.text.map_err(|failure| {
        let (line, column) = place(template, done.at);
        let message = format!(
            "template: tpl:{line}:{column}: executing \"tpl\": {}",
            failure.message
        );
        failed(Stage::Execute, &message)
    })?;
    let decoded = decoded(&mut Meter::default(), &text);
    outcome.rendered = Some(text);
    let json = decoded.map_err(|message| failed(Stage::Yaml, &message))?;
    outcome.enabled_if = json == "true";
    outcome.value = Some(json);
    Ok(())
}

/// Line from 1 and column from 0, as Go counts them.
fn place(template: &str, at: usize) -> (usize, usize) {
    let before = template.as_bytes().get(..at).unwrap_or(template.as_bytes());
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |newline| newline + 1);
    (line, at.saturating_sub(start))
}

fn one_line(message: &str) -> String {
    message.replace(['\n', '\r'], " ")
}

impl Outcome {
    /// The result as one line of JSON, with the fields `rendered`, `value`, `enabledIf`, `error`, `message` and `findings`.
    pub fn to_json(&self) -> String {
        let mut out = vec![b'{'];
        let mut field = |name: &str, text: &[u8]| {
            if out.len() > 1 {
                out.push(b',');
            }
            json::quote(&mut out, name.as_bytes(), false);
            out.push(b':');
            out.extend_from_slice(text);
        };
        let quoted = |text: &[u8]| {
            let mut out = Vec::new();
            json::quote(&mut out, text, false);
            out
        };
        if let Some(problem) = &self.problem {
            field("error", &quoted(problem.stage.name().as_bytes()));
            field("message", &quoted(problem.message.as_bytes()));
        }
        if let Some(rendered) = &self.rendered {
            field("rendered", &quoted(rendered));
        }
        if let Some(value) = &self.value {
            field("value", value.as_bytes());
        }
        field("enabledIf", self.enabled_if.to_string().as_bytes());
        if !self.findings.is_empty() {
            let findings: Vec<Vec<u8>> = self
                .findings
                .iter()
                .map(|finding| quoted(finding.as_bytes()))
                .collect();
            field(
                "findings",
                &[b"[", findings.join(&b',').as_slice(), b"]"].concat(),
            );
        }
        out.push(b'}');
        runes::lossy(&out)
    }
}
