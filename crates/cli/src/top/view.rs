//! The state of the screen, and the effect of each key on that state. This code needs neither a terminal nor a run, so
//! every key can be tested.

use std::path::PathBuf;

use millstream_flow::Snapshot;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::steer::place::Run;
use crate::steer::setting;

/// The maximum length of a typed value or filter, in characters.
const MAX_TYPED: usize = 60;

/// A run in the list, with its newest state or the reason why there is no state.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub(crate) run: Run,
    pub(crate) state: Result<Box<Snapshot>, String>,
    /// Whether the run no longer answers.
    pub(crate) ended: bool,
}

/// A table on the screen of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Stages,
    Resources,
}

/// The order of the stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The order in which the flow declares the stages.
    Flow,
    Waiting,
    Oldest,
}

/// An overlay on the screen, which receives the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Overlay {
    None,
    Help,
    /// The user types a value. The fields are the setting's name and its current value.
    Edit {
        key: String,
        now: String,
        typed: String,
    },
    /// The user must confirm a change.
    Confirm(Change),
    /// The user types a filter on the names in the tables.
    Filter {
        typed: String,
    },
}

/// A change of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Set {
        key: String,
        old: String,
        new: String,
    },
    /// Run the units of dead letters again. The field is the number of units that have died.
    Retry(u64),
    Drain,
}

/// The action that a key requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    /// Open the screen of this run; `None` returns to the list.
    Open(Option<Run>),
    Change(Change),
    Suspend,
    Quit,
}

/// See the [module](self).
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The open run; `None` for the list.
    pub(crate) open: Option<Run>,
    /// The selected run in the list, identified by its socket.
    pub(crate) chosen: Option<PathBuf>,
    pub(crate) table: Table,
    pub(crate) order: Order,
    pub(crate) filter: String,
    /// The index of the selected stage in the flow.
    pub(crate) stage: usize,
    /// The index of the selected resource in the flow.
    pub(crate) resource: usize,
    pub(crate) overlay: Overlay,
    /// The result of the last change, or the reason why it was not made.
    pub(crate) message: Option<Result<String, String>>,
}

impl View {
    pub(crate) fn new(open: Option<Run>) -> Self {
        Self {
            open,
            chosen: None,
            table: Table::Stages,
            order: Order::Flow,
            filter: String::new(),
            stage: 0,
            resource: 0,
            overlay: Overlay::None,
            message: None,
        }
    }

    /// Returns the indices of the shown stages in the flow, in the order in which they are shown.
    pub(crate) fn stages(&self, now: &Snapshot) -> Vec<usize> {
        let mut shown: Vec<usize> =
            (0..now.stages.len()).filter(|&stage| self.is_wanted(&now.stages[stage].name)).collect();
        match self.order {
            Order::Flow => {}
            Order::Waiting => shown.sort_by_key(|&stage| std::cmp::Reverse(now.stages[stage].waiting)),
            Order::Oldest => shown.sort_by_key(|&stage| std::cmp::Reverse(now.stages[stage].oldest_ns)),
        }
        shown
    }

    /// Returns the indices of the shown resources in the flow.
    pub(crate) fn resources(&self, now: &Snapshot) -> Vec<usize> {
        (0..now.resources.len()).filter(|&resource| self.is_wanted(&now.resources[resource].name)).collect()
    }

    fn is_wanted(&self, name: &str) -> bool {
        self.filter.is_empty() || name.to_lowercase().contains(&self.filter.to_lowercase())
    }

    /// Applies a key. `now` is the newest state of the open run, and `list` contains all runs.
    pub(crate) fn key(&mut self, key: KeyEvent, now: Option<&Snapshot>, list: &[Listed]) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Action::Quit,
                KeyCode::Char('z') => Action::Suspend,
                _ => Action::Nothing,
            };
        }
        match std::mem::replace(&mut self.overlay, Overlay::None) {
            Overlay::None => {}
            Overlay::Help => return Action::Nothing,
            Overlay::Edit { key: setting, now: old, typed } => return self.edit(key, setting, old, typed),
            Overlay::Confirm(change) => {
                return match key.code {
                    KeyCode::Char('y' | 'Y') => Action::Change(change),
                    _ => self.say(Err("nothing was changed".to_owned())),
                };
            }
            Overlay::Filter { typed } => return self.typed_filter(key, typed),
        }
        self.message = None;
        match (key.code, &self.open, now) {
            (KeyCode::Char('q'), ..) => Action::Quit,
            (KeyCode::Char('?' | 'h') | KeyCode::F(1), ..) => {
                self.overlay = Overlay::Help;
                Action::Nothing
            }
            (_, None, _) => self.list_key(key, list),
            (KeyCode::Esc | KeyCode::Backspace | KeyCode::Char('l'), Some(_), _) => self.leave(),
            (_, Some(_), Some(now)) => self.run_key(key, now),
            _ => Action::Nothing,
        }
    }

    fn leave(&mut self) -> Action {
        if self.filter.is_empty() {
            self.chosen = self.open.take().map(|run| run.path);
            return Action::Open(None);
        }
        self.filter.clear();
        Action::Nothing
    }

    fn say(&mut self, message: Result<String, String>) -> Action {
        self.message = Some(message);
        Action::Nothing
    }
}

// ---- the list -----------------------------------------------------------------------------------------

impl View {
    /// Returns the index of the selected run in the list.
    pub(crate) fn selected(&self, list: &[Listed]) -> usize {
        list.iter().position(|listed| Some(&listed.run.path) == self.chosen.as_ref()).unwrap_or(0)
    }

    fn list_key(&mut self, key: KeyEvent, list: &[Listed]) -> Action {
        let selected = self.selected(list);
        if let Some(place) = moved(key.code, selected, list.len()) {
            self.chosen = list.get(place).map(|listed| listed.run.path.clone());
            return Action::Nothing;
        }
        match (key.code, list.get(selected)) {
            (KeyCode::Enter | KeyCode::Right, Some(listed)) => {
                (self.stage, self.resource, self.table) = (0, 0, Table::Stages);
                self.open = Some(listed.run.clone());
                Action::Open(self.open.clone())
            }
            (KeyCode::Esc, _) => Action::Quit,
            _ => Action::Nothing,
        }
    }
}

// ---- a run --------------------------------------------------------------------------------------------

impl View {
    fn run_key(&mut self, key: KeyEvent, now: &Snapshot) -> Action {
        let (shown, selected) = match self.table {
            Table::Stages => (self.stages(now), &mut self.stage),
            Table::Resources => (self.resources(now), &mut self.resource),
        };
        let place = shown.iter().position(|place| place == selected).unwrap_or(0);
        if let Some(&to) = moved(key.code, place, shown.len()).and_then(|place| shown.get(place)) {
            *selected = to;
            return Action::Nothing;
        }
        // The selection moves to a row that is shown, so that no key changes a hidden row.
        *selected = shown.get(place).copied().unwrap_or(*selected);
        match key.code {
            KeyCode::Tab | KeyCode::BackTab | KeyCode::Right | KeyCode::Left => {
                let has_resources = !now.resources.is_empty();
                self.table =
                    if self.table == Table::Stages && has_resources { Table::Resources } else { Table::Stages };
                Action::Nothing
            }
            KeyCode::Char('s') => {
                self.order = match self.order {
                    Order::Flow => Order::Waiting,
                    Order::Waiting => Order::Oldest,
                    Order::Oldest => Order::Flow,
                };
                Action::Nothing
            }
            KeyCode::Char('/') => {
                self.overlay = Overlay::Filter { typed: self.filter.clone() };
                Action::Nothing
            }
            KeyCode::Char('d') => {
                self.overlay = Overlay::Confirm(Change::Drain);
                Action::Nothing
            }
            KeyCode::Char('r') if now.dead_lettered == 0 => {
                self.say(Err("there are no dead letters to run again".to_owned()))
            }
            KeyCode::Char('r') => {
                self.overlay = Overlay::Confirm(Change::Retry(now.dead_lettered));
                Action::Nothing
            }
            KeyCode::Char('i') => self.begin_edit("inflight", now),
            KeyCode::Char('m') => self.begin_edit("memory", now),
            KeyCode::Char('w') => self.begin_edit("workers", now),
            KeyCode::Enter | KeyCode::Char('c') if shown.is_empty() => Action::Nothing,
            KeyCode::Enter | KeyCode::Char('c') => self.begin_edit(&self.selected_key(now), now),
            KeyCode::Char('+' | '=') => self.step(now, 1),
            KeyCode::Char('-') => self.step(now, -1),
            KeyCode::Char('p') => self.pause(now),
            _ => Action::Nothing,
        }
    }

    /// Returns the setting of the selected row.
    fn selected_key(&self, now: &Snapshot) -> String {
        match self.table {
            Table::Stages => now.stages.get(self.stage).map(|stage| format!("stage.{}.workers", stage.name)),
            Table::Resources => now.resources.get(self.resource).map(|resource| format!("resource.{}", resource.name)),
        }
        .unwrap_or_default()
    }

    fn begin_edit(&mut self, key: &str, now: &Snapshot) -> Action {
        match value_of(key, now) {
            Some(value) => {
                self.overlay = Overlay::Edit { key: key.to_owned(), now: value.clone(), typed: value };
                Action::Nothing
            }
            None => self.say(Err(format!("`{key}` cannot be set in this flow"))),
        }
    }

    fn edit(&mut self, key: KeyEvent, setting: String, now: String, mut typed: String) -> Action {
        match key.code {
            KeyCode::Esc => return self.say(Err("nothing was changed".to_owned())),
            KeyCode::Enter if typed == now || typed.is_empty() => {
                return self.say(Err("nothing was changed".to_owned()));
            }
            KeyCode::Enter => {
                self.overlay = Overlay::Confirm(Change::Set { key: setting, old: now, new: typed });
                return Action::Nothing;
            }
            _ => type_into(&mut typed, key.code),
        }
        self.overlay = Overlay::Edit { key: setting, now, typed };
        Action::Nothing
    }

    fn typed_filter(&mut self, key: KeyEvent, mut typed: String) -> Action {
        match key.code {
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Enter => self.filter = typed,
            code => {
                type_into(&mut typed, code);
                self.filter.clone_from(&typed);
                self.overlay = Overlay::Filter { typed };
            }
        }
        Action::Nothing
    }

    /// Proposes to raise or lower the selected row's setting by one.
    fn step(&mut self, now: &Snapshot, by: i64) -> Action {
        let key = self.selected_key(now);
        let Some(old) = value_of(&key, now) else { return Action::Nothing };
        // In `2..8`, the step changes the ceiling. In `20/s`, it changes the number before the unit.
        let (before, number, after) = match (old.rsplit_once(".."), old.split_once('/')) {
            (Some((floor, ceiling)), _) => (format!("{floor}.."), ceiling, String::new()),
            (None, Some((number, per))) => (String::new(), number, format!("/{per}")),
            (None, None) => (String::new(), old.as_str(), String::new()),
        };
        let Some(new) = number.parse::<u64>().ok().and_then(|number| number.checked_add_signed(by)) else {
            return self.begin_edit(&key, now);
        };
        let new = format!("{before}{new}{after}");
        self.overlay = Overlay::Confirm(Change::Set { key, old, new });
        Action::Nothing
    }

    /// Proposes to pause or resume the units that need the selected resource.
    fn pause(&mut self, now: &Snapshot) -> Action {
        let Some(resource) = now.resources.get(self.resource).filter(|_| self.table == Table::Resources) else {
            return self.say(Err("select a resource (Tab): its units then wait".to_owned()));
        };
        let key = format!("resource.{}", resource.name);
        if !resource.kind.ends_with("tokens") {
            return self.say(Err(format!("{} is a {}: only tokens can be set to 0", resource.name, resource.kind)));
        }
        if resource.capacity == 0 {
            return self.begin_edit(&key, now);
        }
        let old = resource.capacity.to_string();
        self.overlay = Overlay::Confirm(Change::Set { key, old, new: "0".to_owned() });
        Action::Nothing
    }
}

/// Returns the current value of a setting.
fn value_of(key: &str, now: &Snapshot) -> Option<String> {
    let lines = setting::settable(now);
    lines.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix('=').map(str::to_owned))
}

fn type_into(typed: &mut String, key: KeyCode) {
    match key {
        KeyCode::Char(c) if typed.chars().count() < MAX_TYPED => typed.push(c),
        KeyCode::Backspace => drop(typed.pop()),
        KeyCode::Delete => typed.clear(),
        _ => {}
    }
}

/// Returns the new index of the selection after a key, in a list of `len` entries; `None` if the key does not move the
/// selection.
fn moved(key: KeyCode, place: usize, len: usize) -> Option<usize> {
    const PAGE: usize = 10;
    let last = len.saturating_sub(1);
    match key {
        KeyCode::Down | KeyCode::Char('j') => Some((place + 1).min(last)),
        KeyCode::Up | KeyCode::Char('k') => Some(place.saturating_sub(1)),
        KeyCode::PageDown => Some((place + PAGE).min(last)),
        KeyCode::PageUp => Some(place.saturating_sub(PAGE)),
        KeyCode::Home | KeyCode::Char('g') => Some(0),
        KeyCode::End | KeyCode::Char('G') => Some(last),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample::snapshot;

    fn run() -> Run {
        Run { name: "archive-7".into(), path: "/run/archive-7".into() }
    }

    fn press(view: &mut View, keys: &str) -> Action {
        let now = snapshot();
        let mut last = Action::Nothing;
        for c in keys.chars() {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\x1b' => KeyCode::Esc,
                '\x08' => KeyCode::Backspace,
                c => KeyCode::Char(c),
            };
            last = view.key(KeyEvent::new(code, KeyModifiers::NONE), Some(&now), &[]);
        }
        last
    }

    fn set(key: &str, old: &str, new: &str) -> Action {
        Action::Change(Change::Set { key: key.into(), old: old.into(), new: new.into() })
    }

    #[test]
    fn dead_letters_are_run_again_only_after_a_confirmation() {
        let mut view = View::new(Some(run()));
        assert_eq!(press(&mut view, "r"), Action::Nothing);
        assert_eq!(view.overlay, Overlay::Confirm(Change::Retry(2)));
        assert_eq!(press(&mut view, "n"), Action::Nothing);
        assert_eq!(view.message, Some(Err("nothing was changed".to_owned())));
        assert_eq!(press(&mut view, "ry"), Action::Change(Change::Retry(2)));
        let mut none = snapshot();
        none.dead_lettered = 0;
        view.key(KeyEvent::new(KeyCode::Char('r'), KeyModifiers::NONE), Some(&none), &[]);
        assert_eq!((&view.overlay, view.message.as_ref().map(Result::is_err)), (&Overlay::None, Some(true)));
    }

    #[test]
    fn a_change_is_typed_shown_and_only_then_made() {
        let mut view = View::new(Some(run()));
        assert_eq!(press(&mut view, "jj\n\x082\n"), Action::Nothing);
        let expected = Change::Set { key: "stage.zstd.workers".into(), old: "1..4".into(), new: "1..2".into() };
        assert_eq!(view.overlay, Overlay::Confirm(expected));
        assert_eq!(press(&mut view, "y"), set("stage.zstd.workers", "1..4", "1..2"));
        assert_eq!(view.overlay, Overlay::None);
        assert_eq!(press(&mut view, "\t+y"), set("resource.disk", "2", "3"));
        assert_eq!(press(&mut view, "j-y"), set("resource.api", "50/s", "49/s"));
        assert_eq!(press(&mut view, "i9\ny"), set("inflight", "256", "2569"));
        assert_eq!(press(&mut view, "kpy"), set("resource.disk", "2", "0"));
        assert_eq!(press(&mut view, "dy"), Action::Change(Change::Drain));
    }

    #[test]
    fn a_key_that_cancels_changes_nothing() {
        let mut view = View::new(Some(run()));
        for keys in ["\n\x1b", "\n\n", "+n", "+\x1b", "d ", "i\x1b", "m\n", "p", "\tjp"] {
            assert_eq!(press(&mut view, keys), Action::Nothing, "{keys:?}");
            assert_eq!(view.overlay, Overlay::None, "{keys:?}");
            assert!(matches!(view.message, Some(Err(_))), "{keys:?}");
        }
    }

    #[test]
    fn the_filter_and_the_order_choose_the_stages() {
        let mut view = View::new(Some(run()));
        let now = snapshot();
        press(&mut view, "/BL");
        assert_eq!(view.stages(&now), [1]);
        press(&mut view, "\n");
        // The selected row is always one that is shown.
        assert_eq!(press(&mut view, "+y"), set("stage.blake3.workers", "1..4", "1..5"));
        assert_eq!(press(&mut view, "\x1b"), Action::Nothing);
        press(&mut view, "s");
        assert_eq!(view.stages(&now), [3, 2, 1, 0]);
        press(&mut view, "/nothing has this name\n");
        assert_eq!(press(&mut view, "\n"), Action::Nothing);
        assert_eq!(press(&mut view, "\x1b\x1b"), Action::Open(None));
    }

    #[test]
    fn control_c_quits_from_everywhere() {
        for keys in ["", "\n", "d", "?", "/x", "i"] {
            let mut view = View::new(Some(run()));
            press(&mut view, keys);
            let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
            assert_eq!(view.key(key, None, &[]), Action::Quit, "{keys:?}");
        }
    }

    #[test]
    fn a_run_selected_in_the_list_stays_selected_as_the_list_changes() {
        let listed = |name: &str| Listed {
            run: Run { name: name.into(), path: format!("/run/{name}").into() },
            state: Ok(Box::new(snapshot())),
            ended: false,
        };
        let mut view = View::new(None);
        let list = [listed("a"), listed("b")];
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        view.key(key(KeyCode::Down), None, &list);
        assert_eq!(view.selected(&list), 1);
        let list = [listed("0"), listed("a"), listed("b")];
        assert_eq!(view.selected(&list), 2);
        assert_eq!(view.key(key(KeyCode::Enter), None, &list), Action::Open(Some(list[2].run.clone())));
        assert_eq!(view.key(key(KeyCode::Esc), None, &list), Action::Open(None));
        assert_eq!((view.selected(&list), view.key(key(KeyCode::Esc), None, &[])), (2, Action::Quit));
    }
}
