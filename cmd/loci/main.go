// Command loci is the memory server: it serves the REST API on a Postgres of its own or on one it is given, and keeps that one's keys.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	_ "time/tzdata" // agents have timezones, and the image has none

	"github.com/alecthomas/kong"
)

func main() {
	forgetEmpty(os.Environ())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// forgetEmpty takes a setting that is empty, as containers pass on what is not set, for one that is not there.
func forgetEmpty(environment []string) {
	for _, variable := range environment {
		if name, value, _ := strings.Cut(variable, "="); value == "" && strings.HasPrefix(name, "LOCI_") {
			_ = os.Unsetenv(name) // fails for names that no variable has
		}
	}
}

// cli is the command line. Each setting is a flag of the same name as its variable.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Serve the REST API."`
	Keys    keysCmd    `cmd:"" help:"Create, list and revoke API keys."`
	Upload  uploadCmd  `cmd:"" help:"Upload files to a folder of a running server and wait until they are searchable."`
	Health  healthCmd  `cmd:"" help:"Ask a running server for its health; exits with 1 if it has none."`
	Version versionCmd `cmd:"" help:"Print the version."`

	ReadDocument readDocumentCmd `cmd:"" hidden:""` // the server runs it
}

// streams are where a command writes.
type streams struct{ out, err io.Writer }

// run is the program: it returns the exit code, 2 for a command line or a setting that is wrong, 1 for a failure.
func run(ctx context.Context, args []string, out, errs io.Writer) (code int) {
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("loci"), kong.Description("A memory server for AI agents."), kong.UsageOnError(),
		kong.Writers(out, errs), kong.Exit(func(code int) { exited = code; panic(exit{}) }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(streams{out, errs}))
	if err != nil {
		fmt.Fprintln(errs, "loci:", err)
		return 2
	}
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(exit); !ok {
				panic(r)
			}
			code = exited
		}
	}()
	command, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintln(errs, "loci:", err)
		return 2
	}
	err = command.Run()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // told to stop before it had begun
	}
	return report(errs, err)
}

// exit unwinds out of kong where it would end the process, as after --help.
type exit struct{}

// settingError is a setting that is wrong; its text names it.
type settingError struct{ error }

func report(errs io.Writer, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(errs, "loci:", err)
	if _, ok := errors.AsType[settingError](err); ok {
		return 2
	}
	return 1
}

type versionCmd struct{}

func (versionCmd) Run(s streams) error {
	_, err := fmt.Fprintln(s.out, version())
	return err
}

// version is what the binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return release
	}
	return info.Main.Version
}

// release is the version of the source.
const release = "0.1.0"
