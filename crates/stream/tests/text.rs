//! Tests of text programs: their values, and the messages and spans of their problems.

use std::io::Read;

use millstream_stream::Part;
use millstream_stream::text::{Inputs, Problem, TextProgram, parse};

fn values(text: &str) -> Vec<String> {
    let running = parse(text, &Inputs::none()).and_then(TextProgram::run).unwrap_or_else(|p| panic!("{text}: {p}"));
    running.values().map(|value| value.unwrap_or_else(|error| panic!("{text}: {error}")).to_string()).collect()
}

fn problem(text: &str) -> Problem {
    match parse(text, &Inputs::none()).and_then(|program| program.check()) {
        Ok(_) => panic!("{text} was accepted"),
        Err(problem) => problem,
    }
}

fn error(text: &str) -> String {
    let running = parse(text, &Inputs::none()).and_then(TextProgram::run).unwrap_or_else(|p| panic!("{text}: {p}"));
    running.values().find_map(Result::err).expect("an error").to_string()
}

#[test]
fn each_function_gives_its_values() {
    for (text, expected) in [
        ("numbers(1, 3)", &["1", "2", "3"][..]),
        ("x = numbers(1, 3); map(x, it * 2 + 1);", &["3", "5", "7"]),
        ("filter(numbers(1, 9), it % 3 == 0 or it == 1)", &["1", "3", "6", "9"]),
        ("every(numbers(0, 9), 4, 1)", &["1", "5", "9"]),
        ("skip(numbers(0, 4), 3)", &["3", "4"]),
        ("keep(numbers(0, 5), \"0(110)\")", &["1", "2", "4", "5"]),
        ("repeat(numbers(1, 2), 2)", &["1", "1", "2", "2"]),
        ("prefix(numbers(1, 2), -1, \"a\")", &["-1", "a", "1", "2"]),
        ("window(numbers(1, 5), 2)", &["1\t2", "3\t4"]),
        ("map(window(numbers(1, 4), 2, 1), it[1] - it[0])", &["1", "1", "1"]),
        ("scan(numbers(1, 4), 0, acc + it)", &["1", "3", "6", "10"]),
        ("reduce(numbers(1, 4), 1, acc * it)", &["24"]),
        ("group(numbers(1, 4), it % 2, 0, acc + it)", &["1\t1", "0\t2", "1\t4", "0\t6"]),
        ("merge(numbers(1, 2), numbers(11, 13))", &["1", "11", "2", "12"]),
        ("x = numbers(1, 3); zip(x, map(x, 0 - it), x)", &["1\t-1\t1", "2\t-2\t2", "3\t-3\t3"]),
        ("x = numbers(1, 4); zip(align(every(x, 2), x), x)", &["1\t1", "\t2", "3\t3", "\t4"]),
        ("x = numbers(1, 4); zip(hold(every(x, 2), x), x)", &["1\t1", "1\t2", "3\t3", "3\t4"]),
        ("x = numbers(1, 6); zip(every(x, 2), hold(x, every(x, 2)))", &["1\t1", "3\t3", "5\t5"]),
        ("x = numbers(1, 6); zip(every(x, 2), reread(x))", &["1\t1", "3\t2", "5\t3"]),
        ("x = numbers(1, 6); zip(every(x, 2), buffer(x, 9))", &["1\t1", "3\t2", "5\t3"]),
        (
            "map(numbers(1, 1), length(\"abc\") == 3 and starts(\"abc\", \"ab\") and contains(\"abc\", \"c\"))",
            &["true"],
        ),
        ("map(numbers(1, 1), number(\"7\") + number(\" 2.5\"))", &["9.5"]),
        ("map(numbers(1, 2), it * 2.5 - -0.25)", &["2.75", "5.25"]),
        ("filter(numbers(1, 3), it > 1.5 and it != 3.0)", &["2"]),
        ("map(numbers(-1, -1), (0 - 9223372036854775807 + it) % it)", &["0"]),
        ("numbers(-9223372036854775808, -9223372036854775807)", &["-9223372036854775808", "-9223372036854775807"]),
        ("prefix(numbers(0, 0), -9223372036854775808)", &["-9223372036854775808", "0"]),
        ("map(numbers(1, 1), -9223372036854775808 + it - -2)", &["-9223372036854775805"]),
        ("map(numbers(1, 1), - -(it - 9223372036854775807) == -9223372036854775806)", &["true"]),
        ("map(numbers(1, 1), number(\"-9223372036854775808\") == -9223372036854775808)", &["true"]),
    ] {
        assert_eq!(values(text), expected, "{text}");
    }
}

#[test]
fn problems_are_reported_with_their_spans() {
    for (text, message, place) in [
        ("", "expected a stream or a value, found the end", 0..0),
        ("x = numbers(1, 2)", "expected `;` after a definition", 17..17),
        ("numbers(1, 2) 7", "expected the end of the program", 14..15),
        ("evry(numbers(1, 2), 2)", "`evry` is not a function that returns a stream", 0..22),
        ("every(y, 2)", "`y` is not defined here", 6..7),
        ("x = numbers(1, 2); x = x; x", "`x` is defined twice", 19..20),
        ("every(numbers(1, 2), 0)", "expects a number from 1", 21..22),
        ("every(numbers(1, 2))", "does not take 1 argument", 0..20),
        ("map(numbers(1, 2), foo(it))", "`foo` is not a function of values", 19..26),
        ("map(numbers(1, 2), acc)", "`acc` is not a value here", 19..22),
        ("scan(numbers(1, 2), it, acc)", "does not depend on `it`", 20..22),
        ("keep(numbers(1, 2), \"(0)\")", "lets nothing through", 20..25),
        ("lines()", "no input left", 0..7),
        ("numbers(1, 99999999999999999999)", "does not fit into 64 bits", 11..31),
        ("numbers(1, 9223372036854775808)", "does not fit into 64 bits", 11..30),
        ("map(numbers(1, 2), \"abc)", "a text has no end", 19..24),
        ("numbers(1, 2) & 3", "`&` is not part of a program", 14..15),
        ("it + 1", "expected a stream, found a value", 0..6),
        ("a = numbers(1, 2); b = numbers(1, 2); hold(a, b)", "come from `a` and `b`", 38..48),
    ] {
        let problem = problem(text);
        assert!(problem.message.contains(message), "{text}: {}", problem.message);
        assert_eq!(problem.labels[0].0, place, "{text}");
    }
}

#[test]
fn values_that_cannot_be_computed_are_reported_with_the_reason() {
    for (text, message) in [
        ("map(numbers(1, 2), it / 0)", "`map(numbers(1, 2), it / 0)`: 1 / 0: division by zero"),
        ("map(numbers(-1, -1), it % (it + 1))", "-1 % 0: division by zero"),
        (
            "map(numbers(-1, -1), (0 - 9223372036854775807 + it) / it)",
            "`: -9223372036854775808 / -1 does not fit into 64 bits",
        ),
        ("map(numbers(1, 1), - -9223372036854775808)", "0 - -9223372036854775808 does not fit into 64 bits"),
        ("map(numbers(9223372036854775807, 9223372036854775807), it + 1)", "does not fit into 64 bits"),
        ("filter(numbers(1, 2), it)", "expected true or false, found a number"),
        ("map(numbers(1, 2), it.a)", "a number has no field `a`"),
        ("map(window(numbers(1, 2), 2), it[2])", "no value at index 2 of a list of 2"),
        ("map(numbers(1, 2), it < \"a\")", "converts a text to a number"),
        ("reduce(numbers(1, 2), 0, acc + \"a\")", "expects numbers"),
        ("group(numbers(1, 3), it, 0, acc, 2)", "more than 2 keys"),
        ("reduce(numbers(1, 40), \"x\", acc + acc)", "a text of 134217728 bytes; expected at most 67108864"),
    ] {
        let error = error(text);
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn a_row_has_a_limit_where_a_quote_is_never_closed() {
    let endless = || Ok(Box::new(b"a\n1\n\"".chain(std::io::repeat(b'x'))) as Box<dyn Read>);
    let program = parse("csv()", &Inputs::content(endless)).unwrap();
    let error = program.run().unwrap().values().find_map(Result::err).unwrap().to_string();
    assert_eq!(error, "cannot read `csv()`: row 2: longer than 67108864 bytes; is a quote not closed?");
}

#[test]
fn a_line_of_json_has_a_limit_on_the_memory_of_its_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.json");
    std::fs::write(&path, format!("{{\"a\": 1}}\n[{}0]\n", "{},".repeat(300_000))).unwrap();
    let running = parse("json()", &Inputs::files(vec![path])).unwrap().run().unwrap();
    let error = running.values().find_map(Result::err).unwrap().to_string();
    for part in [
        "rows.json: line 2: the values up to column 7864",
        "take more than 67108864 bytes of memory: each takes 32, or 56 with a name",
        "`jq -c '.[]'` writes each value of a list in a line",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn a_quote_that_is_never_closed_is_an_error_at_its_line_and_no_other_end_is() {
    let folder = tempfile::tempdir().unwrap();
    let run = |content: &str| -> Result<Vec<String>, String> {
        let path = folder.path().join("table.csv");
        std::fs::write(&path, content).unwrap();
        let running = parse("map(csv(), it.b)", &Inputs::files(vec![path])).unwrap().run().unwrap();
        running.values().map(|value| value.map(|value| value.to_string()).map_err(|error| error.to_string())).collect()
    };
    let beyond_a_read = format!("a,b\n{}x,\"y\n", "1,2\r\n".repeat(20_000));
    let returns_beyond_a_read = format!("a,b\r{}x,\"y\r", "1,2\r".repeat(20_000));
    for (content, place) in [
        ("a,b\n1,\"2\n", "row 1: a quote opens in line 2 "),
        ("a,b\n1,\"2", "row 1: a quote opens in line 2 "),
        ("a,b\n1,\"", "row 1: a quote opens in line 2 "),
        ("a,b\n1,\"2\"\"", "row 1: a quote opens in line 2 "),
        ("a,b\n\n1,\"2\n2\"\n3,\"4\r\n5,6\r\n\r\n", "row 2: a quote opens in line 5 "),
        ("a,b\n1,2\n\"3,4\n5,6\n", "row 2: a quote opens in line 3 "),
        ("a,b\n1,\"x\ny\",\"z\n", "row 1: a quote opens in line 3 "),
        ("a,\"b\n1,2\n", "a quote opens in line 1 "),
        ("\n\n\"", "a quote opens in line 3 "),
        ("a,b\r1,\"2\r", "row 1: a quote opens in line 2 "),
        ("a,b\r1,2\r\"3,4\r5,6\r\n7\n", "row 2: a quote opens in line 3 "),
        ("a,b\r\n1,\"x\ry\",\"z", "row 1: a quote opens in line 3 "),
        (&returns_beyond_a_read, "row 20001: a quote opens in line 20002 "),
        (&beyond_a_read, "row 20001: a quote opens in line 20002 "),
    ] {
        let error = run(content).unwrap_err();
        let place =
            format!("table.csv: {place}and is never closed; expected a quote at the end of its field, and each");
        assert!(error.contains(&place), "{content:.50?}: {error}");
    }
    let long = format!("a,b\n1,\"{}\"", "x\n".repeat(40_000));
    for (content, expected) in [
        ("a,b\n1,2", &["2"][..]),
        ("a,b\n1,2\n", &["2"]),
        ("a,b\n1,2\r", &["2"]),
        ("a,b\r\n1,2\r\n\r\n\n", &["2"]),
        ("a,b\n1,", &[""]),
        ("a,b\n1,\"2\"", &["2"]),
        ("a,b\n1,\"2\"\"\"", &["2\""]),
        ("a,b\n1,\"2\n\"\n", &["2\n"]),
        ("a,b\n1,2\"\n3,4", &["2\"", "4"]),
        ("a,\"b\"", &[]),
        ("a,b\n", &[]),
        ("\n\n", &[]),
        ("\u{feff}", &[]),
        ("", &[]),
        (&long, &[&"x\n".repeat(40_000)]),
    ] {
        assert_eq!(
            run(content).as_deref(),
            Ok(&expected.iter().map(ToString::to_string).collect::<Vec<_>>()[..]),
            "{content:.50?}"
        );
    }
}

#[test]
fn errors_of_an_input_name_its_line_once() {
    for (text, input, expected) in [
        (
            "json()",
            &b"{\"a\": 1}\n{\"a\": x}\n"[..],
            "cannot read `json()`: line 2: not JSON at column 7: expected value; expected one JSON value in each line",
        ),
        ("json()", b"[1\n", "`json()`: line 1: not JSON at column 2: EOF while parsing a list; expected one"),
        (
            "map(lines(), number(it))",
            b"1\n2\n12\xE94\n",
            "`map(lines(), number(it))`: line 3: byte 3 of `12\u{FFFD}4` is 0xE9, which is not UTF-8; expected a number such as `7` \
             or `-2.5`; `iconv -t UTF-8` converts",
        ),
        (
            "x = filter(lines(), it != \"-\"); zip(x, map(skip(x, 1), number(it)))",
            b"1\n-\n2\n\xFF\n",
            ": line 4: byte 1 of ",
        ),
        ("reduce(lines(), 0, acc + number(it))", b"1\ntwo\n", ": line 2: `two` is not a number"),
        ("map(csv(), number(it.n))", b"n\n1\n\n \n", ": row 2: an empty text is not a number"),
        ("map(records(2), number(it))", b"12ab", ": record 2: `ab` is not a number"),
        ("csv()", b"a,b\n1,2\n3\n", "`csv()`: row 2: found 1 field(s); expected 2, as in the header"),
        ("map(window(lines(), 2, 1), number(it[0]))", b"1\none\n2\n", "number(it[0]))`: `one` is not a number"),
        // The value has waited, so the source may have read further. The error therefore names no position.
        (
            "x = lines(); map(zip(skip(x, 1), x), number(it[1]))",
            b"one\ntwo\n",
            "number(it[1]))`: `one` is not a number",
        ),
    ] {
        let inputs = Inputs::content(move || Ok(Box::new(input)));
        let running = parse(text, &inputs).and_then(TextProgram::run).unwrap_or_else(|p| panic!("{text}: {p}"));
        let error = running.values().find_map(Result::err).expect("an error").to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let long = error(&format!("map(numbers(1, 1), number(\"{}\"))", "é".repeat(10_000)));
    assert!(long.len() < 300, "{long}");
}

#[test]
fn a_failing_reduce_ends_before_its_input_does() {
    let nearly_without_end = "numbers(1, 9000000000000000000)";
    let failed = error(&format!("reduce({nearly_without_end}, \"a\", acc + it)"));
    assert!(failed.contains("reduce"), "{failed}");
    let failed = error(&format!("x = {nearly_without_end}; reduce(merge(x, x), \"a\", acc + it)"));
    assert!(failed.contains("reduce"), "{failed}");
}

#[test]
fn equal_numbers_are_one_key_and_a_nan_is_none() {
    let x = "x = merge(numbers(1, 2), map(numbers(1, 2), it * number(\"1.0\")))";
    assert_eq!(values(&format!("{x}; group(x, it, 0, acc + 1)")), ["1\t1", "1\t2", "2\t1", "2\t2"]);
    assert_eq!(values(&format!("{x}; group(window(x, 1), it, 0, acc + 1)")), ["1\t1", "1\t2", "2\t1", "2\t2"]);
    let nan = error("group(map(numbers(1, 1), number(\"0.0\") / number(\"0.0\")), it, 0, acc + 1)");
    assert!(nan.contains("NaN"), "{nan}");
}

#[test]
fn room_that_does_not_help_a_reduce_is_refused_and_room_that_does_is_accepted() {
    let x = "x = numbers(1, 5)";
    for join in [
        "zip(reduce(x, 0, acc + it), x)",
        "zip(spill(reduce(x, 0, acc + it), \"/tmp\"), x)",
        "zip(buffer(reduce(x, 0, acc + it), 3), x)",
        "zip(reduce(buffer(x, 3), 0, acc + it), x)",
        "merge(spill(reduce(x, 0, acc + it), \"/tmp\"), x)",
    ] {
        let refused = problem(&format!("{x}; {join}"));
        assert!(refused.message.contains("no buffer is enough") || refused.message.contains("end"), "{refused:?}");
    }
    assert_eq!(values(&format!("{x}; zip(reduce(x, 0, acc + it), buffer(x, 6))")), ["15\t1"]);
}

#[test]
fn a_name_does_not_stand_for_itself_and_operators_are_limited() {
    for text in ["x = reread(x); x", "x = map(reread(x), it); x"] {
        assert_eq!(problem(text).message, "`x` is not defined here");
    }
    let mut doubled = "v0 = numbers(1, 2); ".to_owned();
    for n in 1..20 {
        doubled += &format!("v{n} = zip(reread(v{}), reread(v{})); ", n - 1, n - 1);
    }
    let message = problem(&(doubled + "v19")).message;
    assert!(message.contains("more than 10000 operators"), "{message}");
}

#[test]
fn nesting_is_limited_and_no_text_overflows_the_stack() {
    for text in [
        "(".repeat(60_000),
        "every(".repeat(10_000),
        format!("map(numbers(1, 2), {}it)", "-".repeat(50_000)),
        format!("map(numbers(1, 2), {}it)", "not ".repeat(10_000)),
        format!("map(numbers(1, 2), it{})", ".a".repeat(20_000)),
        format!("map(numbers(1, 2), it{})", "+it".repeat(15_000)),
        format!("map(numbers(1, 2), it{})", "[0".repeat(15_000)),
        "a".repeat(70_000),
    ] {
        problem(&text);
    }
}

#[test]
fn random_bytes_are_programs_or_problems_and_never_a_panic() {
    let mut random = millstream_verify_random::Random::seeded();
    let words = [
        "x",
        "=",
        ";",
        "zip",
        "(",
        ")",
        ",",
        "every",
        "numbers(1,5)",
        "2",
        "it",
        "\"(10)\"",
        "hold",
        "x",
        "reread",
        "-",
        "[",
        "é",
        "filter",
    ];
    for _ in 0..3000 {
        let text: String = (0..random.below(14)).map(|_| words[random.below(words.len() as u64) as usize]).collect();
        let text = if random.below(2) == 0 { format!("x=numbers(1,5);{text}") } else { text };
        if let Ok(program) = parse(&text, &Inputs::none()) {
            let _ = program.check();
        }
    }
}

#[test]
fn a_refusal_points_at_both_paths_and_each_way_out_is_accepted_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines");
    std::fs::write(&file, "1\n2\n3\n4\n5\n6\n").unwrap();
    let inputs = Inputs::files(vec![file]);
    for (join, ways) in [
        ("zip(every(x, 2), x)", 6),
        ("zip(x, filter(x, contains(it, \"2\")))", 5),
        ("zip(x, reduce(x, 0, acc + 1))", 3),
        ("zip(repeat(x, 3), x)", 3),
        ("merge(x, map(skip(every(x, 3), 1), it))", 6),
        ("zip(filter(x, contains(it, \"2\")), filter(x, starts(it, \"3\")))", 3),
        ("a = filter(x, it > \"1\"); b = filter(x, it < \"6\"); zip(a, b)", 6),
        ("merge(filter(x, it > \"1\"), filter(filter(x, it > \"2\"), it > \"3\"))", 3),
    ] {
        let text = format!("x = lines(); {join}");
        let problem = parse(&text, &inputs).unwrap().check().unwrap_err();
        for (span, label) in &problem.labels[..2] {
            assert!(join.contains(&text[span.clone()]) && !label.is_empty(), "{text}: {problem:?}");
        }
        assert_eq!(&text[problem.labels[2].0.clone()], "lines()", "{text}: {problem:?}");
        let help = problem.help.unwrap();
        let written: Vec<&str> = help.lines().skip(1).step_by(2).map(str::trim).collect();
        assert_eq!(written.len(), ways, "{help}");
        for way in written {
            let definitions = text.rfind(';').map_or("", |end| &text[..=end]);
            let mended = format!("{definitions} {way}");
            let program = parse(&mended, &inputs).unwrap_or_else(|problem| panic!("{mended}: {problem}"));
            program.check().unwrap_or_else(|problem| panic!("{mended}: {problem}"));
            assert!(program.run().unwrap().values().all(|value| value.is_ok()), "{mended}");
        }
    }
}

#[test]
fn inputs_are_lines_json_rows_and_records() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        std::fs::write(folder.path().join(name), content).unwrap();
        folder.path().join(name)
    };
    let run = |text: &str, file: &std::path::Path| -> Result<Vec<String>, String> {
        let program = parse(text, &Inputs::files(vec![file.to_owned()])).map_err(|problem| problem.message)?;
        let running = program.run().map_err(|problem| problem.message)?;
        running.values().map(|value| value.map(|value| value.to_string()).map_err(|error| error.to_string())).collect()
    };
    let lines = file("lines", b"a\n\nlast");
    assert_eq!(run("map(lines(), length(it))", &lines).unwrap(), ["1", "0", "4"]);
    let json = file("json", b"{\"a\": 3, \"b\": [1, \"x\"]}\n{\"a\": -1, \"b\": [null, \"y\"]}\n");
    assert_eq!(run("x = json(); zip(map(x, it.a), map(x, it.b[1]))", &json).unwrap(), ["3\tx", "-1\ty"]);
    let csv = file("csv", b"name,size\n\"a, b\",3\nc,4\n");
    assert_eq!(run("x = csv(); zip(map(x, it.name), map(x, number(it.size) + 1))", &csv).unwrap(), ["a, b\t4", "c\t5"]);
    let records = file("records", b"abcdef");
    assert_eq!(run("records(2)", &records).unwrap(), ["ab", "cd", "ef"]);
    assert!(run("records(4)", &records).unwrap_err().contains("record 2: 2 bytes at the end; expected records of 4"));
    assert!(run("json()", &lines).unwrap_err().contains("line 1: not JSON"));
    assert!(run("csv()", &file("ragged", b"a,b\n1\n")).is_err());
    assert!(run("csv()", &file("twice", b"a,b,a\n1,2,3\n")).unwrap_err().contains("two columns `a`"));
    assert!(run("csv()", &file("bytes", b"a,\xff\n1,2\n")).unwrap_err().contains("column 2 is not UTF-8"));
    for text in ["1e400", "nan", "-inf", "1x"] {
        let found = run("map(lines(), number(it))", &file("number", text.as_bytes()));
        assert!(found.unwrap_err().contains("is not a number"), "{text}");
    }
    assert!(run("lines()", &folder.path().join("none")).unwrap_err().contains("No such file"));
    assert!(run("numbers(1, 2)", &lines).unwrap_err().contains("got 1 input(s)"));
}

#[test]
fn standard_input_is_read_once() {
    let problem = parse("x = lines(); zip(x, reread(x))", &Inputs::standard()).err().unwrap();
    assert!(problem.message.contains("cannot be read a second time"), "{problem}");
    let problem = parse("zip(lines(), lines())", &Inputs::standard()).err().unwrap();
    assert!(problem.message.contains("no input left"), "{problem}");
}

#[test]
fn a_content_is_opened_for_each_reading_and_is_all_that_the_program_sees() {
    let opened = std::rc::Rc::new(std::cell::Cell::new(0));
    let count = std::rc::Rc::clone(&opened);
    let inputs = Inputs::content(move || {
        count.set(count.get() + 1);
        Ok(Box::new(&b"1\n2\n3\n4\n"[..]))
    });
    let mut running = parse("x = lines(); zip(every(x, 2), reread(x))", &inputs).unwrap().run().unwrap();
    let mut pairs = Vec::new();
    while let Some(pair) = running.next().unwrap() {
        pairs.push(pair.to_string());
    }
    assert_eq!((pairs, opened.get()), (vec!["1\t1".to_owned(), "3\t2".to_owned()], 2));
    for outside in ["lines(\"/etc/passwd\")", "spill(lines(), \"/tmp\")", "zip(lines(), lines())"] {
        assert!(parse(outside, &inputs).is_err(), "{outside}");
    }
    let help = parse("x = lines(); zip(every(x, 2), x)", &inputs).unwrap().check().unwrap_err().help.unwrap();
    assert!(help.contains("reread(x)") && !help.contains("spill") && !help.contains("must be a file"), "{help}");
}

#[test]
fn a_failing_content_fails_the_run_with_its_error() {
    let inputs = Inputs::content(|| Err(std::io::Error::other("the tape is torn")));
    let error = parse("lines()", &inputs).unwrap().run().unwrap().next().unwrap_err();
    assert!(error.to_string().contains("the tape is torn"), "{error}");
}

#[test]
fn a_long_text_takes_more_steps_than_a_short_one() {
    let pauses = |text: &str, content: &'static str, copies: usize| {
        let content = move || Ok(Box::new(std::io::Cursor::new(content.repeat(copies))) as Box<dyn Read>);
        let mut running = parse(text, &Inputs::content(content)).unwrap().run().unwrap();
        let mut pauses = 0;
        loop {
            match running.next_within(&mut 64).unwrap() {
                Part::Pause => pauses += 1,
                Part::Value(_) => {}
                Part::End => return pauses,
            }
        }
    };
    let long = "x".repeat(1 << 20) + "\n";
    let long: &'static str = long.leak();
    for (text, content, copies, least, most) in [
        ("filter(lines(), it == \"\")", "x\n", 64 * 100, 90, 110),
        // Each line takes 256 steps, and no pause comes within a line.
        ("filter(lines(), it == \"\")", long, 20, 15, 25),
        ("x = lines(); reduce(zip(x, x), 0, acc + 1)", long, 20, 15, 45),
        // The state grows by one byte for each line. Each 4096 bytes of it take one more step.
        ("reduce(lines(), \"\", acc + it)", "x\n", 40_000, 640 * 4, 640 * 8),
    ] {
        let found = pauses(text, content, copies);
        assert!((least..=most).contains(&found), "{text}: {found} pauses");
    }
}
