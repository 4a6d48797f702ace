//! What a profile keeps: names, and a tree of calls with the weight of each. All of it has limits.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use rb_sys::VALUE;

/// The root of the tree.
pub(super) const ROOT: u32 = 0;
/// Names that every profile has.
pub(super) const OTHER: u32 = 0;
pub(super) const CUT_OFF: u32 = 1;
pub(super) const GARBAGE_COLLECTION: u32 = 2;
const FIXED: [&str; 3] = ["(other methods)", "(callers left out)", "(garbage collection)"];

/// Different names and calls.
const MOST_NAMES: usize = 10_000;
const MOST_NODES: usize = 100_000;
/// Different paths of requests.
const MOST_GROUPS: usize = 200;
/// Bytes of a name and of a path. (With these, everything fits into the file.)
const LABEL_BYTES: usize = 200;
const PATH_BYTES: usize = 300;

/// A method or block.
#[derive(Debug, Clone, Default)]
pub(super) struct Name {
    pub(super) label: String,
    /// Empty: it is native.
    pub(super) path: String,
    /// Its first line; 0: not known.
    pub(super) line: u32,
}

#[derive(Debug)]
struct Node {
    parent: u32,
    frame: u32,
    weight: u64,
}

#[derive(Debug)]
pub(super) struct Recording {
    names: Vec<Name>,
    by_name: HashMap<(String, String), u32>,
    by_value: HashMap<VALUE, u32>,
    /// Names with classes, by path and by the label that backtraces have.
    with_class: HashMap<(String, String), u32>,
    without_class: HashMap<(String, String), u32>,
    nodes: Vec<Node>,
    children: HashMap<(u32, u32), u32>,
    /// The last stack, outermost first: each frame and its node. The next one most often begins in the same way.
    last: Vec<(u32, u32)>,
    groups: usize,
    samples: u64,
    idle: u64,
    left_out: u64,
    /// The names of the method in which a thread waits for a request: with its class, and without.
    claims: Vec<u32>,
}

impl Recording {
    pub(super) fn new() -> Self {
        let name = |label: &&str| Name { label: (*label).into(), ..Name::default() };
        Recording {
            names: FIXED.iter().map(name).collect(),
            by_name: HashMap::new(),
            by_value: HashMap::new(),
            with_class: HashMap::new(),
            without_class: HashMap::new(),
            nodes: vec![Node { parent: ROOT, frame: OTHER, weight: 0 }],
            children: HashMap::new(),
            last: Vec::new(),
            groups: 0,
            samples: 0,
            idle: 0,
            left_out: 0,
            claims: Vec::new(),
        }
    }

    /// The number of a frame that Ruby has reported before.
    pub(super) fn known(&self, value: VALUE) -> Option<u32> {
        self.by_value.get(&value).copied()
    }

    /// Whether a thread that is innermost here waits for a request.
    pub(super) fn is_claim(&self, frame: u32) -> bool {
        self.claims.contains(&frame)
    }

    /// A frame that Ruby has reported for the first time. `short`: the label that backtraces have.
    pub(super) fn frame_of_value(&mut self, value: VALUE, name: Name, short: &str) -> u32 {
        let key = (cut(&name.path, PATH_BYTES), cut(short, LABEL_BYTES));
        let frame = self.frame_of_name(name);
        self.by_value.insert(value, frame);
        if frame != OTHER {
            self.with_class.entry(key).or_insert(frame);
        }
        frame
    }

    /// A frame of a backtrace.
    #[cfg(not(ruby_gte_3_3))]
    pub(super) fn frame_without_class(&mut self, short: &str, path: &str) -> u32 {
        let key = (cut(path, PATH_BYTES), cut(short, LABEL_BYTES));
        if let Some(frame) = self.with_class.get(&key) {
            return *frame;
        }
        let frame = self.frame_of_name(Name { label: short.into(), path: path.into(), line: 0 });
        if frame != OTHER {
            self.without_class.insert(key, frame);
        }
        frame
    }

    fn frame_of_name(&mut self, name: Name) -> u32 {
        let name =
            Name { label: cut(&name.label, LABEL_BYTES), path: cut(&name.path, PATH_BYTES), line: name.line };
        let key = (name.label.clone(), name.path.clone());
        if let Some(frame) = self.by_name.get(&key) {
            return *frame;
        }
        if self.names.len() >= MOST_NAMES {
            self.left_out += 1;
            return OTHER;
        }
        let frame = self.names.len() as u32;
        if name.path.is_empty() && matches!(&name.label[..], "Highball::Ring#claim" | "claim") {
            self.claims.push(frame);
        }
        self.names.push(name);
        self.by_name.insert(key, frame);
        frame
    }

    /// The frame that stands for requests with this path.
    pub(super) fn group(&mut self, path: &str) -> u32 {
        let key = (cut(path, LABEL_BYTES), String::new());
        if let Some(frame) = self.by_name.get(&key) {
            return *frame;
        }
        if self.groups >= MOST_GROUPS {
            return self.frame_of_name(Name { label: "(other paths)".into(), ..Name::default() });
        }
        self.groups += 1;
        self.frame_of_name(Name { label: path.into(), ..Name::default() })
    }

    /// The node of a stack, innermost first. Where there is no room for all of it, the node of its outer part.
    pub(super) fn node(&mut self, frames: &[u32]) -> u32 {
        let outermost_first = frames.iter().rev();
        let same =
            self.last.iter().zip(outermost_first.clone()).take_while(|((last, _), frame)| last == *frame);
        self.last.truncate(same.count());
        let mut node = self.last.last().map_or(ROOT, |(_, node)| *node);
        for frame in outermost_first.skip(self.last.len()) {
            let Some(child) = self.child(node, *frame) else {
                self.left_out += 1;
                return node;
            };
            self.last.push((*frame, child));
            node = child;
        }
        node
    }

    fn child(&mut self, parent: u32, frame: u32) -> Option<u32> {
        if let Some(child) = self.children.get(&(parent, frame)) {
            return Some(*child);
        }
        if self.nodes.len() >= MOST_NODES {
            return None;
        }
        let child = self.nodes.len() as u32;
        self.nodes.push(Node { parent, frame, weight: 0 });
        self.children.insert((parent, frame), child);
        Some(child)
    }

    /// A sample: something was here for this time, or is this many objects.
    pub(super) fn add(&mut self, node: u32, weight: u64) {
        self.samples += 1;
        self.nodes[node as usize].weight += weight;
    }

    /// A thread has waited for a request for this time.
    pub(super) fn add_idle(&mut self, weight: u64) {
        self.idle += weight;
    }

    /// This number of things could not be kept.
    pub(super) fn note_left_out(&mut self, number: u64) {
        self.left_out += number;
    }

    /// Writes it in the form that the supervisor's PROTOCOL.md has.
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let mut out = BufWriter::new(file);
        writeln!(out, "highball-profile 1 {} {} {}", self.samples, self.idle, self.left_out)?;
        let mut names: Vec<&Name> = self.names.iter().collect();
        for (key, frame) in &self.without_class {
            // Its class has become known since.
            if let Some(known) = self.with_class.get(key) {
                names[*frame as usize] = &self.names[*known as usize];
            }
        }
        for name in names {
            writeln!(out, "f {}\t{}\t{}", name.line, name.label, name.path)?;
        }
        for node in &self.nodes[1..] {
            writeln!(out, "n {} {} {}", node.parent, node.frame, node.weight)?;
        }
        writeln!(out, "end")?;
        out.flush()
    }
}

/// The text without control characters, shortened to this many bytes.
fn cut(text: &str, bytes: usize) -> String {
    let plain = |char: char| if char.is_control() { '?' } else { char };
    let mut short: String = text.chars().take(bytes).map(plain).collect();
    while short.len() > bytes {
        short.pop();
    }
    short
}
