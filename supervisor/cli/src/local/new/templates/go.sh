#!/bin/sh
# Go with the libraries that Debian packages and the helper beside this file: ./go.sh build -o bin/{{name}} . or ./go.sh test .
cd "$(dirname "$0")"
export GO111MODULE=off CGO_ENABLED=0 GOFLAGS= GOPATH="$PWD/gopath:/usr/share/gocode"
exec go "$@"
