//! The command line's INPUTs, filled into a flow.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use millstream_command::screen::shown;

use super::error::{FlowError, Problem, Refusal};
use super::model::{
    Condition, ExecSpec, ExecStderr, ExecStdout, FlowFile, GatherBy, GatherSpec, GzipMode, HttpSpec, LinesFrom,
    MaxBytes, OpSpec, SourceSpec, StageSpec, TextTest, ZstdMode,
};
use super::template::{Field, Template};

impl FlowFile {
    /// Fills in `{input}` with the first INPUT.
    ///
    /// A source that is exactly `{input}` (`walk = "{input}"`, `lines = "{input}"`) is not filled in, because it
    /// takes every INPUT. A flow with `lines = "-"` that does not use `{input}` reads the INPUTs, if there are any,
    /// in place of standard input. For lines, an INPUT `-` is standard input.
    ///
    /// # Errors
    /// An INPUT is missing, or the flow has no use for one of them.
    pub fn bind_inputs(&mut self, inputs: &[OsString]) -> Result<(), FlowError> {
        if let SourceSpec::Lines { from: from @ LinesFrom::Stdin, .. } = &mut self.source
            && self.input_span.is_none()
            && !inputs.is_empty()
        {
            *from = LinesFrom::File(Template::of(Field::Input));
        }
        if let Some(problem) = self.misused_inputs(inputs) {
            return Err(Refusal::new(&self.path, self.text.clone(), vec![problem]).into());
        }
        if let SourceSpec::Lines { from, .. } = &mut self.source
            && matches!(from, LinesFrom::File(file) if file.is_only(&Field::Input))
            && inputs == ["-"]
        {
            *from = LinesFrom::Stdin;
        }
        let Some(input) = inputs.first().map(|input| input.as_bytes()) else { return Ok(()) };
        let takes_all = self.takes_all_inputs();
        let params = std::mem::take(&mut self.params);
        if let (Some(from), false) = (self.source.origin_mut(), takes_all) {
            from.bind(&params, Some(input));
        }
        let except = match &mut self.source {
            SourceSpec::Walk { except, .. } => except.as_mut_slice(),
            _ => &mut [],
        };
        for template in except.iter_mut().chain(self.stages.iter_mut().flat_map(stage_templates)) {
            template.bind(&params, Some(input));
        }
        self.params = params;
        Ok(())
    }

    /// Whether the source takes every INPUT of the command line rather than only the first.
    fn takes_all_inputs(&self) -> bool {
        match &self.source {
            SourceSpec::Args => true,
            SourceSpec::Walk { root: from, .. } | SourceSpec::Lines { from: LinesFrom::File(from), .. } => {
                from.is_only(&Field::Input)
            }
            SourceSpec::Lines { from: LinesFrom::Stdin, .. } => false,
        }
    }

    /// The reason why the flow cannot run with these INPUTs; `None` if it can.
    fn misused_inputs(&self, inputs: &[OsString]) -> Option<Problem> {
        let usage = |inputs: &str| format!("write `millstream run {} {inputs}`", shown::path(&self.path));
        let at_source = |message: String, label| Problem::new(message).at(self.source_span.clone(), label);
        match (inputs.len(), self.takes_all_inputs(), &self.input_span) {
            (0, _, Some(span)) => {
                let problem =
                    Problem::new("the flow needs an INPUT, but none is given").at(span.clone(), "stands for the INPUT");
                Some(problem.help(usage("INPUT")))
            }
            (0, true, None) => {
                let problem =
                    at_source("the flow's units are its INPUTs, but none is given".to_owned(), "one unit per INPUT");
                Some(problem.help(usage("INPUT…")))
            }
            (1.., false, None) => {
                let problem = at_source("the flow has no use for an INPUT".to_owned(), "takes units from elsewhere");
                Some(problem.help("leave it out, or use `{input}` in the flow file"))
            }
            (2.., false, Some(_)) => {
                let problem =
                    at_source(format!("the flow takes one INPUT, but {} are given", inputs.len()), "takes one");
                Some(problem.help(usage("INPUT")))
            }
            _ => None,
        }
    }
}

impl SourceSpec {
    /// The template of the folder that is walked, or of the file that is read; `None` for standard input and for
    /// `args`.
    fn origin_mut(&mut self) -> Option<&mut Template> {
        match self {
            Self::Walk { root: from, .. } | Self::Lines { from: LinesFrom::File(from), .. } => Some(from),
            Self::Lines { from: LinesFrom::Stdin, .. } | Self::Args => None,
        }
    }
}

/// Every template of a stage.
fn stage_templates(stage: &mut StageSpec) -> Vec<&mut Template> {
    let mut templates: Vec<&mut Template> = stage.needs.iter_mut().filter_map(|need| need.key.as_mut()).collect();
    op_templates(&mut stage.op, &mut templates);
    templates
}

fn op_templates<'a>(op: &'a mut OpSpec, templates: &mut Vec<&'a mut Template>) {
    match op {
        OpSpec::Read { path, .. } => templates.push(path),
        OpSpec::Write { path, mode, .. } => templates.extend(std::iter::once(path).chain(mode)),
        OpSpec::Append { path, line, .. } => templates.extend([path, line]),
        OpSpec::Exec(ExecSpec { argv, stdout, stderr, tag, env, dir, .. }) => {
            templates.extend(argv);
            templates.extend(env.iter_mut().map(|(_, value)| value));
            templates.extend(dir);
            templates.extend(tag);
            if let ExecStdout::File { path, .. } = stdout {
                templates.push(path);
            }
            if let ExecStderr::File(path) = stderr {
                templates.push(path);
            }
        }
        OpSpec::Http(HttpSpec { url, headers, body, .. }) => {
            templates.push(url);
            templates.extend(body);
            templates.extend(headers.iter_mut().map(|(_, value)| value));
        }
        OpSpec::Print { tag, .. } => templates.extend(tag),
        OpSpec::Set { payload, fields } => {
            templates.extend(payload);
            templates.extend(fields.iter_mut().map(|(_, value)| value));
        }
        OpSpec::Filter { when } => condition_templates(when, templates),
        OpSpec::Unique { by, .. } => templates.push(by),
        OpSpec::Check { equals, .. } => templates.push(equals),
        OpSpec::Zstd { mode: ZstdMode::Decompress { max_bytes: Some(MaxBytes::Field(field)) } }
        | OpSpec::Gzip { mode: GzipMode::Decompress { max_bytes: Some(MaxBytes::Field(field)) } } => {
            templates.push(field);
        }
        OpSpec::Gather(GatherSpec { by, item, .. }) => {
            templates.extend(item);
            if let GatherBy::Key(key) = by {
                templates.push(key);
            }
        }
        OpSpec::Blake3
        | OpSpec::Sha256
        | OpSpec::Zstd { .. }
        | OpSpec::Gzip { .. }
        | OpSpec::Parse { .. }
        | OpSpec::Stream { .. }
        | OpSpec::Split(_) => {}
    }
}

fn condition_templates<'a>(condition: &'a mut Condition, templates: &mut Vec<&'a mut Template>) {
    match condition {
        Condition::Exists(path) | Condition::Missing(path) | Condition::Content { path, .. } => templates.push(path),
        Condition::Has(text) => templates.push(text),
        Condition::Stale { target, than } => templates.extend([target, than]),
        Condition::Number { number: value, bounds } | Condition::Date { date: value, bounds } => {
            templates.push(value);
            templates.extend(bounds.iter_mut().map(|(_, bound)| bound));
        }
        Condition::Text { text, test } => {
            templates.push(text);
            match test {
                TextTest::Matches(_) => {}
                TextTest::OneOf(words) => templates.extend(words),
                TextTest::Equals(word)
                | TextTest::Contains(word)
                | TextTest::StartsWith(word)
                | TextTest::EndsWith(word) => {
                    templates.push(word);
                }
            }
        }
        Condition::Size { .. } => {}
        Condition::Not(inner) => condition_templates(inner, templates),
        Condition::All(inner) | Condition::Any(inner) => {
            for condition in inner {
                condition_templates(condition, templates);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::super::model::{FlowFile, LinesFrom, OpSpec, SourceSpec};
    use super::super::parse::parse;
    use super::Field;

    fn bound(source: &str, path: &str, inputs: &[&str]) -> Result<FlowFile, String> {
        let text = format!("[source]\n{source}\n[[stage]]\nname = \"r\"\nop = \"read\"\npath = \"{path}\"\n");
        let mut flow = parse("f.toml".as_ref(), &text, &[]).unwrap();
        let inputs: Vec<OsString> = inputs.iter().map(OsString::from).collect();
        flow.bind_inputs(&inputs).map_err(|error| error.to_string())?;
        Ok(flow)
    }

    fn path(flow: &FlowFile) -> String {
        let OpSpec::Read { path, .. } = &flow.stages[0].op else { panic!("not a read") };
        path.to_string()
    }

    #[test]
    fn the_first_input_is_filled_in() {
        let flow = bound("walk = \"{input}/x\"", "{input}.d/{name}", &["in"]).unwrap();
        assert_eq!(path(&flow), "in.d/{name}");
        assert!(matches!(flow.source, SourceSpec::Walk { root, .. } if root.to_string() == "in/x"));
    }

    #[test]
    fn a_source_of_all_inputs_keeps_them_all() {
        let flow = bound("walk = \"{input}\"", "{input}.d/{name}", &["a", "b"]).unwrap();
        assert_eq!(path(&flow), "a.d/{name}");
        assert!(matches!(flow.source, SourceSpec::Walk { root, .. } if root.is_only(&Field::Input)));
        assert!(bound("args = true", "{name}", &["a", "b"]).is_ok());
    }

    #[test]
    fn lines_of_standard_input_come_from_the_inputs_when_there_are_some() {
        let from = |inputs| match bound("lines = \"-\"", "{name}", inputs).unwrap().source {
            SourceSpec::Lines { from, .. } => from,
            _ => panic!("not lines"),
        };
        assert!(matches!(from(&[]), LinesFrom::Stdin));
        assert!(matches!(from(&["-"]), LinesFrom::Stdin));
        assert!(matches!(from(&["a", "b"]), LinesFrom::File(file) if file.is_only(&Field::Input)));
        let flow = bound("lines = \"-\"", "{input}/{name}", &["out"]).unwrap();
        assert!(matches!(flow.source, SourceSpec::Lines { from: LinesFrom::Stdin, .. }));
        assert_eq!(path(&flow), "out/{name}");
    }

    #[test]
    fn inputs_too_few_and_too_many_are_refused() {
        for (source, path, inputs, reason) in [
            ("walk = \"{input}\"", "x", &[][..], "f.toml:2: the flow needs an INPUT"),
            ("lines = \"-\"", "{input}", &[], "f.toml:6: the flow needs an INPUT"),
            ("args = true", "x", &[], "f.toml:1: the flow's units are its INPUTs"),
            ("walk = \"folder\"", "x", &["a"], "f.toml:1: the flow has no use for an INPUT"),
            ("walk = \"{input}/x\"", "x", &["a", "b"], "f.toml:1: the flow takes one INPUT, but 2 are given"),
            ("lines = \"-\"", "{input}", &["a", "b"], "f.toml:1: the flow takes one INPUT"),
        ] {
            let error = bound(source, path, inputs).unwrap_err();
            assert!(error.starts_with(reason), "{source} {inputs:?}: {error}");
        }
    }
}
