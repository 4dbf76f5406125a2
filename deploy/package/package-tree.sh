#!/bin/sh
# Assembles the contents of a package in a directory tree as installed: programs, helper programs, units, configuration, man
# pages, completions, documentation, examples and the SDK. The programs have to be built already.
#   package-tree.sh BUILT TREE     BUILT: the directory of the programs, as target/release
set -eu
cd "$(dirname "$0")/../.."
built=$1
tree=$2
rm -rf "$tree"

file() { # mode, from, to
  install -D -m "$1" "$2" "$tree/$3"
}
program() { # from, to: without symbols, which a crash's addresses can be looked up in the build for
  file 0755 "$1" "$2"
  strip --strip-unneeded --remove-section=.comment "$tree/$2"
}

program "$built/talon" usr/bin/talon
for name in talon-state talon-agent talon-gateway talon-mcp talon-mcp-bridge talon-framed-bridge talon-service-bridge talon-top talon-watch talon-lua; do
  program "$built/$name" "usr/libexec/talon/$name"
done
for name in webhook mail valkey telegram slack chat-webhook; do
  program "$built/$name" "usr/libexec/talon/plugins/$name"
done
file 0755 deploy/systemd/talon-clear-up usr/libexec/talon/talon-clear-up

for unit in talon.service talon.socket talon-admin.socket talon-gateway.socket; do
  file 0644 "deploy/systemd/$unit" "usr/lib/systemd/system/$unit"
done
# A service of users, and not of the system.
file 0644 deploy/systemd/talon-watch.service usr/lib/systemd/user/talon-watch.service
file 0644 deploy/systemd/talon.sysusers usr/lib/sysusers.d/talon.conf
file 0644 deploy/systemd/talon.tmpfiles usr/lib/tmpfiles.d/talon.conf
file 0640 deploy/talon.yaml etc/talon/talon.yaml
install -d -m 0755 "$tree/usr/lib/talon/plugins"

"$tree/usr/bin/talon" man "$tree/usr/share/man/man1" >/dev/null
# Without timestamps, which would make two builds differ.
find "$tree/usr/share/man" -name '*.1' -exec gzip -9n {} +
completions() { # shell, to
  install -d "$tree/$(dirname "$2")"
  "$tree/usr/bin/talon" completions "$1" >"$tree/$2"
}
completions bash usr/share/bash-completion/completions/talon
completions zsh usr/share/zsh/vendor-completions/_talon
completions fish usr/share/fish/vendor_completions.d/talon.fish

for page in README.md CHANGELOG.md SPECIFICATION.md docs/*.md; do
  # The index of docs/ would overwrite the project's README.md.
  [ "$page" = docs/README.md ] && continue
  file 0644 "$page" "usr/share/doc/talon/$(basename "$page")"
done
file 0644 docs/README.md usr/share/doc/talon/index.md
for page in docs/tutorials/*.md docs/decisions/*.md; do
  file 0644 "$page" "usr/share/doc/talon/${page#docs/}"
done
(cd deploy && find . -type f ! -path './debian/*' ! -path './package/*' ! -path './systemd/*' ! -name talon.yaml) | while read -r example; do
  file 0644 "deploy/$example" "usr/share/doc/talon/examples/$example"
done
deploy/package/install-sdk.sh "$tree/usr/share/talon"

find "$tree" -type d -exec chmod 0755 {} +
find "$tree/usr/share" -type f -exec chmod 0644 {} +
# All files get the time of the commit, so that the package does not depend on when it is made.
find "$tree" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" {} +
