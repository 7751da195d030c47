//! One line for each step, on standard error, and the result for people or programs.

use std::time::Instant;

use serde_json::{Value, json};

use super::{AfterStep, args::Form};

/// The lines of a command.
pub(super) struct Progress {
    began: Instant,
    steps: Vec<Value>,
    after: Option<AfterStep>,
}

impl Progress {
    /// Begins; `after` is called with each finished step.
    pub(super) fn new(after: Option<AfterStep>) -> Self {
        Self {
            began: Instant::now(),
            steps: Vec::new(),
            after,
        }
    }

    /// A step had nothing to do.
    pub(super) fn kept(&mut self, step: &str, text: &str) {
        self.line("there", text);
        self.steps
            .push(json!({"step": step, "changed": false, "text": text}));
    }

    /// A step was carried out.
    ///
    /// # Errors
    ///
    /// That of the listener: the command ends here.
    pub(super) fn done(&mut self, step: &str, text: &str) -> anyhow::Result<()> {
        self.line("done", text);
        self.steps
            .push(json!({"step": step, "changed": true, "text": text}));
        match &mut self.after {
            Some(after) => after(step),
            None => Ok(()),
        }
    }

    /// Something goes on.
    pub(super) fn note(&self, text: &str) {
        self.line("…", text);
    }

    fn line(&self, word: &str, text: &str) {
        eprintln!("{:6.1} s  {word:<5}  {text}", self.began.elapsed().as_secs_f64());
    }

    /// True if any step was carried out.
    pub(super) fn changed(&self) -> bool {
        self.steps.iter().any(|step| step["changed"] == true)
    }

    /// The result.
    pub(super) fn result(&self, form: Form, mut value: Value, text: &str) -> String {
        match form {
            Form::Text => format!("{text}\n"),
            Form::Json => {
                value["steps"] = Value::Array(self.steps.clone());
                format!("{value}\n")
            }
        }
    }
}
