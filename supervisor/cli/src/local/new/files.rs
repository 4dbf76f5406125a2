//! The files of a new plugin: the example of its language and the helper library, included from the examples'
//! own files, so that there is a single source.

use super::language::Language;
use super::role::NewRole;
use super::template::Template;

/// A file of an example.
macro_rules! example {
    ($path:literal, $from:literal) => {
        Template {
            path: $path,
            #[cfg(test)]
            from: $from,
            text: include_str!(concat!("../../../../../plugins-examples/", $from)),
        }
    };
}

/// A file that is not part of an example.
macro_rules! own {
    ($path:literal, $text:expr) => {
        Template {
            path: $path,
            #[cfg(test)]
            from: "",
            text: $text,
        }
    };
}

/// All files of a plugin in a language: one that greets, or one that plays a role.
pub(super) fn of(language: Language, role: Option<NewRole>) -> Vec<Template> {
    let mut files: Vec<Template> = greeting(language).copied().collect();
    for template in role.into_iter().flat_map(|role| role.templates(language)).flatten() {
        for file in files.iter_mut().filter(|file| file.path == template.path) {
            *file = template;
        }
    }
    files
}

fn greeting(language: Language) -> impl Iterator<Item = &'static Template> {
    let (own, helper) = match language {
        Language::Rust => (RUST, &[][..]),
        Language::Python => (PYTHON, PYTHON_HELPER),
        Language::Go => (GO, GO_HELPER),
        Language::Node => (NODE, NODE_HELPER),
        Language::Lua => (LUA, &[][..]),
    };
    own.iter().chain(helper)
}

static RUST: &[Template] = &[
    own!("README.md", include_str!("templates/rust.md")),
    own!(".gitignore", "/target\n"),
    own!("Cargo.toml", include_str!("templates/Cargo.toml")),
    example!("src/main.rs", "hello/src/main.rs"),
    own!("tests/plugin.rs", include_str!("templates/plugin.rs")),
];

static PYTHON: &[Template] = &[
    own!("README.md", include_str!("templates/python.md")),
    own!(".gitignore", "/venv\n__pycache__\n"),
    example!("plugin.yaml", "python/hello/plugin.yaml"),
    example!("requirements.txt", "python/requirements.txt"),
    example!("main.py", "python/hello/main.py"),
    example!("test_main.py", "python/hello/test_main.py"),
];

static GO: &[Template] = &[
    own!("README.md", include_str!("templates/go.md")),
    own!(".gitignore", "/bin\n"),
    own!("plugin.yaml", "# What ./go.sh builds.\ncommand: bin/{{name}}\n"),
    own!("go.sh", include_str!("templates/go.sh")),
    example!("main.go", "go/hello/main.go"),
    example!("main_test.go", "go/hello/main_test.go"),
];

static NODE: &[Template] = &[
    own!("README.md", include_str!("templates/node.md")),
    own!(".gitignore", "/node_modules\n"),
    example!("plugin.yaml", "node/hello/plugin.yaml"),
    example!("package.json", "node/package.json"),
    example!("package-lock.json", "node/package-lock.json"),
    example!("main.js", "node/hello/main.js"),
    example!("main.test.js", "node/hello/main.test.js"),
];

static LUA: &[Template] = &[
    own!("{{name}}.lua", include_str!("templates/script.lua")),
    own!("{{name}}_test.lua", include_str!("templates/script_test.lua")),
    example!("talon.d.luau", "lua/talon.d.luau"),
    example!(".luaurc", "lua/.luaurc"),
];

static PYTHON_HELPER: &[Template] = &[
    example!("talon_plugin/__init__.py", "python/talon_plugin/__init__.py"),
    example!("talon_plugin/context.py", "python/talon_plugin/context.py"),
    example!("talon_plugin/errors.py", "python/talon_plugin/errors.py"),
    example!("talon_plugin/generated/__init__.py", "python/talon_plugin/generated/__init__.py"),
    example!(
        "talon_plugin/generated/opentalon/__init__.py",
        "python/talon_plugin/generated/opentalon/__init__.py"
    ),
    example!(
        "talon_plugin/generated/opentalon/plugin/__init__.py",
        "python/talon_plugin/generated/opentalon/plugin/__init__.py"
    ),
    example!(
        "talon_plugin/generated/opentalon/plugin/v1/__init__.py",
        "python/talon_plugin/generated/opentalon/plugin/v1/__init__.py"
    ),
    example!(
        "talon_plugin/generated/opentalon/plugin/v1/plugin_pb2.py",
        "python/talon_plugin/generated/opentalon/plugin/v1/plugin_pb2.py"
    ),
    example!(
        "talon_plugin/generated/opentalon/plugin/v1/plugin_pb2.pyi",
        "python/talon_plugin/generated/opentalon/plugin/v1/plugin_pb2.pyi"
    ),
    example!("talon_plugin/generated/talon/__init__.py", "python/talon_plugin/generated/talon/__init__.py"),
    example!(
        "talon_plugin/generated/talon/plugin/__init__.py",
        "python/talon_plugin/generated/talon/plugin/__init__.py"
    ),
    example!(
        "talon_plugin/generated/talon/plugin/v1/__init__.py",
        "python/talon_plugin/generated/talon/plugin/v1/__init__.py"
    ),
    example!(
        "talon_plugin/generated/talon/plugin/v1/notices_pb2.py",
        "python/talon_plugin/generated/talon/plugin/v1/notices_pb2.py"
    ),
    example!(
        "talon_plugin/generated/talon/plugin/v1/notices_pb2.pyi",
        "python/talon_plugin/generated/talon/plugin/v1/notices_pb2.pyi"
    ),
    example!(
        "talon_plugin/generated/talon/state/__init__.py",
        "python/talon_plugin/generated/talon/state/__init__.py"
    ),
    example!(
        "talon_plugin/generated/talon/state/v1/__init__.py",
        "python/talon_plugin/generated/talon/state/v1/__init__.py"
    ),
    example!(
        "talon_plugin/generated/talon/state/v1/state_pb2.py",
        "python/talon_plugin/generated/talon/state/v1/state_pb2.py"
    ),
    example!(
        "talon_plugin/generated/talon/state/v1/state_pb2.pyi",
        "python/talon_plugin/generated/talon/state/v1/state_pb2.pyi"
    ),
    example!("talon_plugin/logs.py", "python/talon_plugin/logs.py"),
    example!(
        "talon_plugin/generated/talon/model/__init__.py",
        "python/talon_plugin/generated/talon/model/__init__.py"
    ),
    example!(
        "talon_plugin/generated/talon/model/v1/__init__.py",
        "python/talon_plugin/generated/talon/model/v1/__init__.py"
    ),
    example!(
        "talon_plugin/generated/talon/model/v1/model_pb2.py",
        "python/talon_plugin/generated/talon/model/v1/model_pb2.py"
    ),
    example!(
        "talon_plugin/generated/talon/model/v1/model_pb2.pyi",
        "python/talon_plugin/generated/talon/model/v1/model_pb2.pyi"
    ),
    example!("talon_plugin/model.py", "python/talon_plugin/model.py"),
    example!("talon_plugin/events.py", "python/talon_plugin/events.py"),
    example!("talon_plugin/storage.py", "python/talon_plugin/storage.py"),
    example!("talon_plugin/notices.py", "python/talon_plugin/notices.py"),
    example!("talon_plugin/plugin.py", "python/talon_plugin/plugin.py"),
    example!("talon_plugin/py.typed", "python/talon_plugin/py.typed"),
    example!("talon_plugin/serve.py", "python/talon_plugin/serve.py"),
    example!("talon_plugin/state.py", "python/talon_plugin/state.py"),
    example!("talon_plugin/testing.py", "python/talon_plugin/testing.py"),
    example!("talon_plugin/tools.py", "python/talon_plugin/tools.py"),
    example!("talon_plugin/types.py", "python/talon_plugin/types.py"),
];

static GO_HELPER: &[Template] = &[
    example!("gopath/src/talonplugin/args.go", "go/talonplugin/args.go"),
    example!("gopath/src/talonplugin/call.go", "go/talonplugin/call.go"),
    example!("gopath/src/talonplugin/noticespb/notices.pb.go", "go/talonplugin/noticespb/notices.pb.go"),
    example!(
        "gopath/src/talonplugin/noticespb/notices_grpc.pb.go",
        "go/talonplugin/noticespb/notices_grpc.pb.go"
    ),
    example!("gopath/src/talonplugin/plugin.go", "go/talonplugin/plugin.go"),
    example!("gopath/src/talonplugin/pluginpb/plugin.pb.go", "go/talonplugin/pluginpb/plugin.pb.go"),
    example!(
        "gopath/src/talonplugin/pluginpb/plugin_grpc.pb.go",
        "go/talonplugin/pluginpb/plugin_grpc.pb.go"
    ),
    example!("gopath/src/talonplugin/plugintest/host.go", "go/talonplugin/plugintest/host.go"),
    example!("gopath/src/talonplugin/model.go", "go/talonplugin/model.go"),
    example!("gopath/src/talonplugin/modelpb/model.pb.go", "go/talonplugin/modelpb/model.pb.go"),
    example!("gopath/src/talonplugin/modelpb/model_grpc.pb.go", "go/talonplugin/modelpb/model_grpc.pb.go"),
    example!("gopath/src/talonplugin/events.go", "go/talonplugin/events.go"),
    example!("gopath/src/talonplugin/notices.go", "go/talonplugin/notices.go"),
    example!("gopath/src/talonplugin/output.go", "go/talonplugin/output.go"),
    example!("gopath/src/talonplugin/storage.go", "go/talonplugin/storage.go"),
    example!("gopath/src/talonplugin/roles.go", "go/talonplugin/roles.go"),
    example!("gopath/src/talonplugin/serve.go", "go/talonplugin/serve.go"),
    example!("gopath/src/talonplugin/state.go", "go/talonplugin/state.go"),
    example!("gopath/src/talonplugin/statepb/state.pb.go", "go/talonplugin/statepb/state.pb.go"),
    example!("gopath/src/talonplugin/statepb/state_grpc.pb.go", "go/talonplugin/statepb/state_grpc.pb.go"),
];

static NODE_HELPER: &[Template] = &[
    example!("talon-plugin/args.js", "node/talon-plugin/args.js"),
    example!("talon-plugin/context.js", "node/talon-plugin/context.js"),
    example!("talon-plugin/errors.js", "node/talon-plugin/errors.js"),
    example!("talon-plugin/index.d.ts", "node/talon-plugin/index.d.ts"),
    example!("talon-plugin/index.js", "node/talon-plugin/index.js"),
    example!("talon-plugin/log.js", "node/talon-plugin/log.js"),
    example!("talon-plugin/model.js", "node/talon-plugin/model.js"),
    example!(
        "talon-plugin/proto/talon/model/v1/model.proto",
        "node/talon-plugin/proto/talon/model/v1/model.proto"
    ),
    example!("talon-plugin/events.js", "node/talon-plugin/events.js"),
    example!("talon-plugin/storage.js", "node/talon-plugin/storage.js"),
    example!("talon-plugin/notices.js", "node/talon-plugin/notices.js"),
    example!("talon-plugin/plugin.js", "node/talon-plugin/plugin.js"),
    example!("talon-plugin/proto.js", "node/talon-plugin/proto.js"),
    example!("talon-plugin/proto/details.proto", "node/talon-plugin/proto/details.proto"),
    example!(
        "talon-plugin/proto/opentalon/plugin/v1/plugin.proto",
        "node/talon-plugin/proto/opentalon/plugin/v1/plugin.proto"
    ),
    example!(
        "talon-plugin/proto/talon/plugin/v1/notices.proto",
        "node/talon-plugin/proto/talon/plugin/v1/notices.proto"
    ),
    example!(
        "talon-plugin/proto/talon/state/v1/state.proto",
        "node/talon-plugin/proto/talon/state/v1/state.proto"
    ),
    example!("talon-plugin/roles.js", "node/talon-plugin/roles.js"),
    example!("talon-plugin/serve.js", "node/talon-plugin/serve.js"),
    example!("talon-plugin/state.js", "node/talon-plugin/state.js"),
    example!("talon-plugin/testing.js", "node/talon-plugin/testing.js"),
];

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn below(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_dir() {
                found.push(path);
            } else if path.file_name().unwrap() != "__pycache__" {
                below(&path, found);
            }
        }
    }

    /// A missing file of a helper would only be noticed by the author of a new plugin.
    #[test]
    fn every_file_of_a_helper_is_carried() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins-examples");
        for (language, helper, not_carried) in [
            (Language::Python, "python/talon_plugin", &[][..]),
            (
                Language::Go,
                "go/talonplugin",
                &[
                    "go/talonplugin/events_test.go",
                    "go/talonplugin/notices_test.go",
                    "go/talonplugin/output_test.go",
                    "go/talonplugin/plugin_test.go",
                ],
            ),
            (Language::Node, "node/talon-plugin", &[]),
        ] {
            let mut there = Vec::new();
            below(&examples.join(helper), &mut there);
            let mut there: Vec<_> =
                there.iter().map(|path| path.strip_prefix(&examples).unwrap().to_str().unwrap()).collect();
            there.retain(|path| !not_carried.contains(path));
            there.sort_unstable();
            let mut carried: Vec<_> =
                greeting(language).map(|file| file.from).filter(|from| from.starts_with(helper)).collect();
            carried.sort_unstable();
            assert_eq!(carried, there, "{helper}");
        }
    }
}
