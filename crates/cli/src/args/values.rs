//! Values that several commands take.

use millstream_command::size;
use millstream_runner::file::model::MAX_WORKERS;

pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

pub(super) fn units(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("the cap must be at least 1 unit".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err("expected a number of units".to_owned()),
    }
}

pub(super) fn memory(text: &str) -> Result<u64, String> {
    match size::parse(text)? {
        0 => Err("the cap must be at least 1 byte".to_owned()),
        bytes => Ok(bytes),
    }
}

pub(super) fn workers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("zero workers would do nothing".to_owned()),
        Ok(count) if count <= MAX_WORKERS => Ok(count),
        Ok(_) => Err(format!("at most {MAX_WORKERS} workers")),
        Err(_) => Err("expected a number of threads".to_owned()),
    }
}
