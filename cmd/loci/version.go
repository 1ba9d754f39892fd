package main

import (
	"context"
	"fmt"
	"regexp"
	"runtime/debug"
)

type versionCmd struct{ asked }

func (c versionCmd) Run(_ context.Context, s streams) error {
	if c.JSON {
		return printJSON(s, map[string]string{"version": version()})
	}
	_, err := fmt.Fprintln(s.out, version())
	return err
}

// built is the version of a program that was built without its repository, as in the image; it is set with -ldflags=-X
// main.built=….
var built string

// version returns the version that the binary was built from.
func version() string {
	if built != "" {
		return built
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	return versionOf(info.Main.Version)
}

// pseudo matches the pseudo-version that Go gives a commit without a tag.
var pseudo = regexp.MustCompile(`\d{14}-[0-9a-f]{12}(\+|$)`)

// versionOf returns the version of a module. If the module has no tag, it returns release.
func versionOf(module string) string {
	if module == "" || module == "(devel)" || pseudo.MatchString(module) {
		return release
	}
	return module
}

// release is the version of the source.
const release = "0.1.0"
