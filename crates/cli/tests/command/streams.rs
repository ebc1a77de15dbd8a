//! Programs in the language of streams as stages of a flow.

use std::fs;

use crate::support::{Room, ended};

fn flow(expression: &str) -> Room {
    let room = Room::new(&format!(
        r#"
        name = "streams"
        memory = "1MiB"
        [source]
        walk = "in"
        [[stage]]
        name = "read"
        op = "read"
        [[stage]]
        name = "compute"
        op = "stream"
        expression = {expression}
        [[stage]]
        name = "write"
        op = "write"
        path = "out/{{name}}"
        "#
    ));
    fs::create_dir(room.path("in")).unwrap();
    room
}

#[test]
fn a_stage_computes_with_the_lines_of_each_file() {
    let room = flow("'x = lines(); zip(skip(x, 1), x)'");
    room.write("in/a", "1\n2\n3\n");
    room.write("in/b", "only");
    ended(&room.run(&["run", "-q", "flow.toml"]), 0);
    assert_eq!((room.read("out/a").as_str(), room.read("out/b").as_str()), ("2\t1\n3\t2\n", ""));
    let (out, _) = ended(&room.run(&["run", "--dry-run", "flow.toml"]), 0);
    assert!(out.contains("compute  8 B"), "{out}");
}

#[test]
fn a_file_larger_than_the_memory_of_the_flow_is_computed_with_from_the_disk() {
    let room = flow("'reduce(lines(), 0, acc + number(it))'");
    let lines: String = (0..400_000).map(|n| format!("{n}\n")).collect();
    room.write("in/a", lines);
    ended(&room.run(&["run", "-q", "flow.toml"]), 0);
    assert_eq!(room.read("out/a"), "79999800000\n");
}

#[test]
fn a_program_without_bounds_is_refused_at_its_place_in_the_flow_file() {
    for quoted in ["'x = lines(); zip(every(x, 2), x)'", "'''\n  x = lines();\n  zip(every(x, 2), x)'''"] {
        let room = flow(quoted);
        for verb in ["plan", "run"] {
            let (_, err) = ended(&room.run(&[verb, "flow.toml"]), 2);
            assert!(err.contains("joins two paths from `x` at different rates: 1 of 2 against 1 of 1"), "{err}");
            let (line, carets) = {
                let mut lines = err.lines().skip_while(|line| !line.contains("zip(every(x, 2), x)"));
                let line =
                    lines.find(|line| line.contains('│') && line.contains("zip(every(x, 2), x)")).unwrap_or_default();
                (line.to_owned(), lines.next().unwrap_or_default().to_owned())
            };
            let column = |text: &str, what: &str| text.find(what).map(|at| text[..at].chars().count());
            assert!(column(&line, "every(x").is_some(), "{err}");
            assert_eq!(column(&carets, "┯").or(column(&carets, "━")), column(&line, "every(x"), "{err}");
            assert!(err.contains("zip(every(x, 2), reread(x))") && !err.contains("spill"), "{err}");
        }
    }
}

#[test]
fn hostile_expressions_are_errors_with_a_place() {
    let deep = format!("'{}'", "(".repeat(50_000));
    for (expression, said) in [
        ("7", "`expression` takes a program in quotes"),
        ("''", "expected"),
        (deep.as_str(), "deep"),
        ("'lines(\"/etc/passwd\")'", "reads one content, and no file"),
        ("'skip(lines(), 99999999999999999999)'", "number"),
        ("\"zip(every(lines(), 2), \\\"\\\\u0000\\\")\"", "expected a stream"),
    ] {
        let (_, err) = ended(&flow(expression).run(&["plan", "flow.toml"]), 2);
        assert!(err.contains(said) && err.contains("flow.toml:"), "{said}: {err:.2000}");
    }
}
