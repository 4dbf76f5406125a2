//! What of `.proto` files is seen on the wire, as lines of text.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet, ServiceDescriptorProto,
};

/// One thing, by its kind and full name.
type Key = (&'static str, String);

/// Everything that others may lean on. Each line begins with a kind and a full name; the rest says what it
/// is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Surface(BTreeMap<Key, Thing>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Thing {
    Named,
    Field { number: i32, label: String, kind: String },
    Value { number: i32 },
    Rpc { takes: String, gives: String },
}

impl Surface {
    /// What these files say.
    pub(crate) fn of(files: &FileDescriptorSet) -> Self {
        let mut surface = Self::default();
        for file in &files.file {
            let package = file.package();
            // The well-known types are not ours to watch.
            if package.starts_with("google.protobuf") {
                continue;
            }
            for message in &file.message_type {
                surface.message(package, message);
            }
            for one in &file.enum_type {
                surface.enumeration(package, one);
            }
            for service in &file.service {
                surface.service(package, service);
            }
        }
        surface
    }

    fn put(&mut self, kind: &'static str, name: impl Into<String>, thing: Thing) {
        self.0.insert((kind, name.into()), thing);
    }

    fn message(&mut self, within: &str, message: &DescriptorProto) {
        let name = format!("{within}.{}", message.name());
        self.put("message", &name, Thing::Named);
        for field in &message.field {
            let thing = Thing::Field {
                number: field.number(),
                label: label(field, message),
                kind: kind(field, &name, message),
            };
            self.put("field", format!("{name}.{}", field.name()), thing);
        }
        for range in &message.reserved_range {
            // The end is one too far in messages.
            self.put("reserved", format!("{name} {}", shown(range.start()..range.end())), Thing::Named);
        }
        for reserved in &message.reserved_name {
            self.put("reserved", format!("{name} {reserved:?}"), Thing::Named);
        }
        for inner in &message.nested_type {
            if !inner.options.as_ref().is_some_and(|options| options.map_entry()) {
                self.message(&name, inner);
            }
        }
        for inner in &message.enum_type {
            self.enumeration(&name, inner);
        }
    }

    fn enumeration(&mut self, within: &str, one: &EnumDescriptorProto) {
        let name = format!("{within}.{}", one.name());
        self.put("enum", &name, Thing::Named);
        for value in &one.value {
            self.put("value", format!("{name}.{}", value.name()), Thing::Value { number: value.number() });
        }
        for range in &one.reserved_range {
            self.put("reserved", format!("{name} {}", shown(range.start()..range.end() + 1)), Thing::Named);
        }
        for reserved in &one.reserved_name {
            self.put("reserved", format!("{name} {reserved:?}"), Thing::Named);
        }
    }

    fn service(&mut self, within: &str, service: &ServiceDescriptorProto) {
        let name = format!("{within}.{}", service.name());
        self.put("service", &name, Thing::Named);
        for method in &service.method {
            let side = |kind: &str, streams: bool| {
                format!("{}{}", if streams { "stream " } else { "" }, kind.trim_start_matches('.'))
            };
            let thing = Thing::Rpc {
                takes: side(method.input_type(), method.client_streaming()),
                gives: side(method.output_type(), method.server_streaming()),
            };
            self.put("rpc", format!("{name}.{}", method.name()), thing);
        }
    }

    /// Reads what [`Display`](fmt::Display) wrote.
    pub(crate) fn parse(text: &str) -> Self {
        let mut surface = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            surface.line(line).unwrap_or_else(|| panic!("baseline.txt cannot be read: {line:?}"));
        }
        surface
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(' ')?;
        match kind {
            "message" | "enum" | "service" | "reserved" => {
                let kind =
                    ["message", "enum", "service", "reserved"].into_iter().find(|known| *known == kind)?;
                self.put(kind, rest, Thing::Named);
            }
            "field" => {
                let (name, rest) = rest.split_once(" = ")?;
                let (number, rest) = rest.split_once(' ')?;
                let (label, kind) = match rest.strip_prefix("oneof ") {
                    Some(rest) => rest.split_once(' ').map(|(of, kind)| (format!("oneof {of}"), kind))?,
                    None => rest.split_once(' ').map(|(label, kind)| (label.to_owned(), kind))?,
                };
                let thing = Thing::Field { number: number.parse().ok()?, label, kind: kind.to_owned() };
                self.put("field", name, thing);
            }
            "value" => {
                let (name, number) = rest.split_once(" = ")?;
                self.put("value", name, Thing::Value { number: number.parse().ok()? });
            }
            "rpc" => {
                let (name, rest) = rest.split_once('(')?;
                let (takes, gives) = rest.strip_suffix(')')?.split_once(") returns (")?;
                self.put("rpc", name, Thing::Rpc { takes: takes.to_owned(), gives: gives.to_owned() });
            }
            _ => return None,
        }
        Some(())
    }

    /// What of this breaks when it becomes that, a sentence each.
    pub(crate) fn breaks(&self, now: &Self) -> Vec<String> {
        let mut breaks = Vec::new();
        for ((kind, name), promised) in &self.0 {
            match now.0.get(&(*kind, name.clone())) {
                None => breaks.push(format!("{kind} {name} was removed")),
                Some(found) => {
                    breaks.extend(differences(promised, found).map(|d| format!("{kind} {name} {d}")))
                }
            }
        }
        for ((kind, name), thing) in &now.0 {
            if self.0.contains_key(&(*kind, name.clone())) {
                continue;
            }
            if let Some(whose) = self.owner(kind, name, thing) {
                breaks.push(format!(
                    "{kind} {name} uses number {} again, which {whose}",
                    thing.number().unwrap_or_default()
                ));
            }
        }
        breaks
    }

    /// Whose number a new field or value takes.
    fn owner(&self, kind: &'static str, name: &str, thing: &Thing) -> Option<String> {
        let number = thing.number()?;
        let (within, _) = name.rsplit_once('.')?;
        let earlier = self.0.iter().find_map(|((other_kind, other), earlier)| {
            let (other_within, other_name) = other.rsplit_once('.')?;
            let same = *other_kind == kind && other_within == within && earlier.number() == Some(number);
            same.then(|| format!("was {other_name}'s"))
        });
        let reserved = || {
            let mut ranges =
                self.0.keys().filter(|(kind, _)| *kind == "reserved").filter_map(|(_, range)| {
                    let (of, range) = range.split_once(' ')?;
                    (of == within).then_some(range)
                });
            ranges.any(|range| covers(range, number)).then(|| "is reserved".to_owned())
        };
        earlier.or_else(reserved)
    }

    /// The lines that are not in this.
    pub(crate) fn added(&self, now: &Self) -> Vec<String> {
        let new = now.0.iter().filter(|(key, _)| !self.0.contains_key(*key));
        new.map(|(key, thing)| line(key, thing)).collect()
    }
}

impl Thing {
    fn number(&self) -> Option<i32> {
        match self {
            Self::Field { number, .. } | Self::Value { number } => Some(*number),
            Self::Named | Self::Rpc { .. } => None,
        }
    }
}

impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# What programs that exist may lean on. Written by the test breaking.rs, which says how to add to it."
        )?;
        self.0.iter().try_for_each(|(key, thing)| writeln!(f, "{}", line(key, thing)))
    }
}

fn line((kind, name): &Key, thing: &Thing) -> String {
    match thing {
        Thing::Named => format!("{kind} {name}"),
        Thing::Field { number, label, kind: of } => format!("{kind} {name} = {number} {label} {of}"),
        Thing::Value { number } => format!("{kind} {name} = {number}"),
        Thing::Rpc { takes, gives } => format!("{kind} {name}({takes}) returns ({gives})"),
    }
}

fn differences(promised: &Thing, found: &Thing) -> impl Iterator<Item = String> {
    let mut differences = Vec::new();
    let mut tell = |was: &dyn fmt::Display, is: &dyn fmt::Display, words: (&str, &str)| {
        if was.to_string() != is.to_string() {
            differences.push(format!("{} {was} and {} {is}", words.0, words.1));
        }
    };
    match (promised, found) {
        (Thing::Field { number, label, kind }, Thing::Field { number: n, label: l, kind: k }) => {
            tell(number, n, ("had number", "has"));
            tell(label, l, ("was", "is"));
            tell(kind, k, ("had type", "has"));
        }
        (Thing::Value { number }, Thing::Value { number: n }) => tell(number, n, ("had number", "has")),
        (Thing::Rpc { takes, gives }, Thing::Rpc { takes: t, gives: g }) => {
            tell(takes, t, ("took", "takes"));
            tell(gives, g, ("gave", "gives"));
        }
        // One kind of line holds one kind of thing.
        _ => {}
    }
    differences.into_iter()
}

fn label(field: &FieldDescriptorProto, message: &DescriptorProto) -> String {
    if field.proto3_optional() {
        return "optional".to_owned();
    }
    if let Some(index) = field.oneof_index {
        let index = usize::try_from(index).expect("an index counts from nothing");
        return format!("oneof {}", message.oneof_decl[index].name());
    }
    let repeated = field.label() == Label::Repeated && !is_map(field, message);
    if repeated { "repeated" } else { "singular" }.to_owned()
}

fn is_map(field: &FieldDescriptorProto, message: &DescriptorProto) -> bool {
    entry(field, message).is_some()
}

/// The message that stands for an entry of a map, if the field is one.
fn entry<'m>(field: &FieldDescriptorProto, message: &'m DescriptorProto) -> Option<&'m DescriptorProto> {
    let name = field.type_name().rsplit('.').next()?;
    let entry = message.nested_type.iter().find(|nested| nested.name() == name)?;
    entry.options.as_ref().is_some_and(|options| options.map_entry()).then_some(entry)
}

fn kind(field: &FieldDescriptorProto, within: &str, message: &DescriptorProto) -> String {
    if let Some(entry) = entry(field, message) {
        let [key, value] = entry.field.as_slice() else { panic!("{within}: a map has keys and values") };
        return format!("map<{}, {}>", kind(key, within, entry), kind(value, within, entry));
    }
    match field.r#type() {
        Type::Message | Type::Enum | Type::Group => field.type_name().trim_start_matches('.').to_owned(),
        scalar => scalar.as_str_name().trim_start_matches("TYPE_").to_lowercase(),
    }
}

/// `5`, or `20 to 22`.
fn shown(range: Range<i32>) -> String {
    let last = range.end - 1;
    if range.start == last { last.to_string() } else { format!("{} to {last}", range.start) }
}

fn covers(range: &str, number: i32) -> bool {
    let (first, last) = range.split_once(" to ").unwrap_or((range, range));
    let within = |first: i32, last: i32| (first..=last).contains(&number);
    matches!((first.parse(), last.parse()), (Ok(first), Ok(last)) if within(first, last))
}
