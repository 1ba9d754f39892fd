// Command loci is the memory server: it serves the REST API on a private Postgres or on the one of LOCI_DATABASE_URL,
// and manages organizations and API keys.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	_ "time/tzdata" // agents have timezones, and the image has none

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgconn"
	kongcompletion "github.com/jotaen/kong-completion"

	"github.com/loci-memory/loci/db"
)

func main() {
	unsetEmpty(os.Environ())
	ctx, stop := untilSignal()
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// unsetEmpty unsets the empty settings: containers pass on unset ones as empty.
func unsetEmpty(environment []string) {
	for _, variable := range environment {
		if name, value, _ := strings.Cut(variable, "="); value == "" && strings.HasPrefix(name, "LOCI_") {
			_ = os.Unsetenv(name) // fails for invalid names, which no variable has
		}
	}
}

// cli is the command line. Each setting is a flag of the same name as its variable.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Serve the REST API."`
	Keys    keysCmd    `cmd:"" help:"Create, list and revoke API keys."`
	Orgs    orgsCmd    `cmd:"" help:"Create, list, rename and delete organizations."`
	Migrate migrateCmd `cmd:"" help:"Bring the database to this program's schema, for a server whose role may not."`
	Memory  memoryCmd  `cmd:"" help:"Work on memory files of a running server."`
	Folders foldersCmd `cmd:"" help:"List, create and delete the folders of a running server."`
	Jobs    jobsCmd    `cmd:"" help:"List what a running server works on in the background, and what failed."`
	Files   filesCmd   `cmd:"" help:"List the files of a running server, read and delete them, and parse them again."`
	Grep    grepCmd    `cmd:"" help:"Look for a pattern in the files of an agent of a running server, as it does."`
	Agents  agentsCmd  `cmd:"" help:"List agents of a running server, export them to files, and import them."`
	Erase   eraseCmd   `cmd:"" help:"Erase texts or a message from all that the organization of a running server stores."`
	Backup  backupCmd  `cmd:"" help:"Write everything in the database to one file, while servers run."`
	Verify  verifyCmd  `cmd:"" help:"Read a backup to its end and say whether it is whole."`
	Reembed reembedCmd `cmd:"" help:"Make the vectors of another embedding model on a running server, and switch to it."`
	Restore restoreCmd `cmd:"" help:"Load a backup into an empty database."`
	Config  configCmd  `cmd:"" help:"Print the settings that a server started here would have, and where they are from."`
	Doctor  doctorCmd  `cmd:"" help:"Examine what a server needs, and say what to do."`
	Import  importCmd  `cmd:"" help:"Take in the sessions that other programs recorded, and Letta's database."`
	Lab     labCmd     `cmd:"" help:"Compare policies of context windows on recorded sessions."`
	MCP     mcpCmd     `cmd:"" name:"mcp" help:"Serve an agent's memory over the Model Context Protocol (stdio)."`
	Search  searchCmd  `cmd:"" help:"Search all memories of an agent on a running server."`
	Eval    evalCmd    `cmd:"" help:"Measure how well searches of a running server find what questions ask for."`
	Stats   statsCmd   `cmd:"" help:"Print what an agent's conversations on a running server hold and how prompts grow."`
	Upload  uploadCmd  `cmd:"" help:"Upload files to a folder of a running server and wait until they are searchable."`
	Health  healthCmd  `cmd:"" help:"Ask a running server for its health; exits with 1 if it has none."`
	Version versionCmd `cmd:"" help:"Print the version."`

	Export agentsExportCmd `cmd:"" help:"Write an agent to a file in Letta's format (.af), as 'agents export'."`

	Completion kongcompletion.Completion `cmd:"" help:"Print how bash, zsh or fish complete this program's commands."`

	ReadDocument readDocumentCmd `cmd:"" hidden:""`               // the server runs it
	RunJQ        runJQCmd        `cmd:"" name:"run-jq" hidden:""` // the server runs it
}

// streams are where a command writes.
type streams struct {
	out, err io.Writer
	in       io.Reader
}

// run runs the program and returns its exit code: 2 for a wrong command line or setting, 1 for another failure, and
// that of a signal for what it interrupted.
func run(ctx context.Context, args []string, out, errs io.Writer) (code int) {
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("loci"), kong.Description("A memory server for AI agents."), kong.UsageOnError(),
		kong.Writers(out, errs), kong.Exit(func(code int) { exited = code; panic(exit{}) }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.NamedMapper("agent", nameOrID("an agent")),
		kong.NamedMapper("agent-or-tree", nameOrID("an agent or a memory tree")))
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
	kongcompletion.Register(parser) // answers a shell that asks, and ends
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:len(args):len(args)], "--help")
	}
	command, err := parser.Parse(joinNegative(args))
	if err == nil {
		err = errors.Join(refuseEmpty(command), refuseContradiction(command))
	}
	if err != nil {
		fmt.Fprintln(errs, "loci:", plainChoices(err))
		return 2
	}
	name := commandName(command.Command())
	s := streams{forTerminal(out), errs, os.Stdin}
	if !endedBySignal[name] {
		s.in = interruptible{ctx, os.Stdin}
	}
	return ended(ctx, errs, name, command.Run(s))
}

// joinNegative joins flags with values that begin with a minus and a digit, which kong takes for flags, up to "--".
func joinNegative(args []string) (joined []string) {
	for i, arg := range args {
		if arg == "--" { // what follows are no flags
			return append(joined, args[i:]...)
		}
		last := len(joined) - 1
		if last >= 0 && flagOnly.MatchString(joined[last]) && negative.MatchString(arg) {
			joined[last] += "=" + arg
			continue
		}
		joined = append(joined, arg)
	}
	return joined
}

var (
	flagOnly = regexp.MustCompile(`^--[a-z-]+$`)
	negative = regexp.MustCompile(`^-[0-9.]`)
)

// exit is the panic that leaves kong where kong would end the process, for example after --help.
type exit struct{}

// settingError is an error in a setting, which its text names.
type settingError struct{ error }

// exitCode prints the error, if any, and returns the exit code for it.
func exitCode(errs io.Writer, err error) int {
	if err == nil {
		return 0
	}
	if db.IsReadOnly(err) {
		err = errors.New("the database is read-only, so nothing can be stored: make it writable, or name the one that is, " +
			"and try again")
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "53100" {
		err = errors.New("the disk of the database is full, so nothing can be stored: make room there, and try again")
	}
	said := err.Error()
	if isTerminal(errs) { // it may repeat what others wrote
		said = tame(said)
	}
	fmt.Fprintln(errs, "loci:", said)
	if _, ok := errors.AsType[settingError](err); ok {
		return 2
	}
	return 1
}

type versionCmd struct{ asked }

// Run implements the command.
func (c versionCmd) Run(s streams) error {
	if c.JSON {
		return printJSON(s, map[string]string{"version": version()})
	}
	_, err := fmt.Fprintln(s.out, version())
	return err
}

// built is the version of a program that is built without its repository, as the image is: -ldflags=-X main.built=….
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

// versionOf returns the version of a module, or that of the source where the module has no tag.
func versionOf(module string) string {
	if module == "" || module == "(devel)" || pseudo.MatchString(module) {
		return release
	}
	return module
}

// release is the version of the source.
const release = "0.1.0"
