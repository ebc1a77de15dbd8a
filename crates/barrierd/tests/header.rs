//! Tests that the C header and the Rust module describe the same layout.

use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;

use millstream_fence::barrierd::layout::{
    Hello, MAGIC, MAX_CLIENTS, MAX_REASON_BYTES, PageClient, PageCpu, PageHead, SOURCE_BPF, SOURCE_NONE, TimesCpu,
    TimesHead, VERSION, page_bytes, times_bytes,
};

/// Generates `_Static_assert`s that a structure of the header has the size and the offsets of the Rust structure.
macro_rules! same {
    ($text:expr, $name:literal, $type:ty, $($field:ident),*) => {
        writeln!($text, "_Static_assert(sizeof(struct {}) == {}, \"\");", $name, size_of::<$type>()).unwrap();
        $(
            let (field, offset) = (stringify!($field), offset_of!($type, $field));
            writeln!($text, "_Static_assert(offsetof(struct {}, {field}) == {offset}, \"{field}\");", $name).unwrap();
        )*
    };
}

#[test]
fn offsets_and_numbers_agree() {
    let mut text = "#include <stddef.h>\n#include \"barrierd.h\"\n".to_owned();
    same!(
        text,
        "barrierd_page",
        PageHead,
        magic,
        version,
        cpus,
        boot_id,
        source,
        daemon,
        turn,
        least_turn,
        least_time,
        least_virtual,
        all_time,
        all_virtual
    );
    same!(text, "barrierd_page_cpu", PageCpu, time, virtual_time);
    same!(text, "barrierd_page_client", PageClient, rests);
    same!(text, "barrierd_times", TimesHead, virtual_now, advanced_at);
    same!(text, "barrierd_times_cpu", TimesCpu, time, virtual_time, idle);
    same!(text, "barrierd_hello", Hello, magic, version, cpus, client);
    for (name, value) in [
        ("BARRIERD_VERSION", VERSION as usize),
        ("BARRIERD_CLIENTS", MAX_CLIENTS),
        ("BARRIERD_REASON_BYTES", MAX_REASON_BYTES),
        ("BARRIERD_SOURCE_NONE", SOURCE_NONE as usize),
        ("BARRIERD_SOURCE_BPF", SOURCE_BPF as usize),
        ("BARRIERD_PAGE_BYTES(7)", page_bytes(7)),
        ("BARRIERD_TIMES_BYTES(7)", times_bytes(7)),
    ] {
        writeln!(text, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
    }
    text.push_str("_Static_assert(sizeof BARRIERD_MAGIC_BYTES == 9, \"\");\n");
    let header = include_str!("../include/barrierd.h");
    let magic = String::from_utf8(MAGIC.to_ne_bytes().to_vec()).unwrap();
    assert!(header.contains(&format!("#define BARRIERD_MAGIC_BYTES \"{magic}\"")));
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("same.c");
    std::fs::write(&source, text).unwrap();
    let output = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-fsyntax-only", "-I"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/include"))
        .arg(&source)
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
