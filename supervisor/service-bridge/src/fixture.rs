//! Messages for the tests, compiled from their source.

use std::collections::HashMap;
use std::path::Path;

use prost_reflect::{DescriptorPool, MessageDescriptor};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use protox::{Compiler, Error};

struct Sources(HashMap<String, String>);

impl FileResolver for Sources {
    fn open_file(&self, name: &str) -> Result<File, Error> {
        let source = self.0.get(name).ok_or_else(|| Error::file_not_found(name))?;
        File::from_source(name, source)
    }
}

/// The FileDescriptorSet of a source, with its imports and comments.
pub(crate) fn descriptor(source: &str) -> Vec<u8> {
    let mut resolver = ChainFileResolver::new();
    resolver.add(Sources(HashMap::from([("x.proto".to_owned(), source.to_owned())])));
    resolver.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).include_source_info(true);
    compiler.open_file(Path::new("x.proto")).unwrap();
    compiler.encode_file_descriptor_set()
}

/// A message `x.M` with these fields, beside an enum `Color` and a message `Wide`.
pub(crate) fn message(fields: &str) -> MessageDescriptor {
    let wide: String = (1..=60).map(|number| format!("string field_{number} = {number};")).collect();
    let source = format!(
        "syntax = \"proto3\"; package x;
         import \"google/protobuf/timestamp.proto\"; import \"google/protobuf/struct.proto\";
         enum Color {{ RED = 0; GREEN = 1; }}
         message Wide {{ {wide} }}
         message M {{ {fields} }}"
    );
    let pool = DescriptorPool::decode(descriptor(&source).as_slice()).unwrap();
    pool.get_message_by_name("x.M").unwrap()
}
