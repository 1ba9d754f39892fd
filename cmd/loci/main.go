// Command loci is the memory server: it serves the REST API on a private Postgres or on the one of LOCI_DATABASE_URL,
// and manages organizations and API keys.
//
// Each file uses those that are named before it:
//   - what commands read and print: terminal.go failure.go output.go progressline.go interrupt.go arguments.go
//     confirm.go log.go version.go
//   - commands and flags, made from structs: flags.go help.go commandline.go completion.go
//   - a running server, over REST: secret.go client.go list.go named.go
//   - the database, and the keys and organizations in it or over REST: database.go administration.go adminrest.go
//     admin.go keylimits.go
//   - what a server is made of: intervals.go memory.go finding.go tracing.go outage.go document.go programs.go jq.go
//     fixtures.go
//     headconn.go ambiguous.go answerpace.go
//   - models: embedding.go modelendpoint.go embeddingmodel.go rerank.go llm.go gateway.go
//   - the settings of a server, and what they make: serving.go embedder.go answering.go config.go settings.go
//   - a running server: process.go stores.go
//   - what it does: serverkeys.go examine.go demo.go listen.go observe.go jobs.go backfill.go maintenance.go restart.go
//     tasks.go serve.go
//   - commands that work on the database, some of them over REST: doctor.go doctorserver.go keys.go quota.go
//     retention.go orgs.go backup.go migrate.go
//     migratespread.go
//   - commands that ask a running server: folders.go agentscreate.go agents.go files.go upload.go synctree.go
//     syncpage.go sync.go syncurls.go grep.go search.go
//     stats.go joblist.go memoryfiles.go memorycompress.go workingmemory.go handovers.go erase.go erasures.go
//     reembed.go
//   - the measurement of searches: evalquestions.go evalscore.go eval.go
//   - what other programs recorded, for policies and for agents: labreport.go lab.go importletta.go
//     importsessions.go
//   - the command line: mcp.go main.go
//
// Two files use a later one: the doctor asks a server, and the command for MCP may run the server.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	_ "time/tzdata" // agents have timezones, and the image has none

	"github.com/spf13/cobra"
)

func main() {
	unsetEmpty(os.Environ())
	cobra.EnableCommandSorting = false // the help lists commands in the order of their fields
	ctx, stop := untilSignal()
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// unsetEmpty unsets empty settings, because containers pass unset variables on as empty ones.
func unsetEmpty(environment []string) {
	for _, variable := range environment {
		if name, value, _ := strings.Cut(variable, "="); value == "" && strings.HasPrefix(name, "LOCI_") {
			_ = os.Unsetenv(name) // fails only for invalid names, which no variable has
		}
	}
}

// cli is the command line. Each setting is a flag, with a name like its variable.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Serve the REST API."`
	Keys    keysCmd    `cmd:"" help:"Create, list and revoke API keys."`
	Orgs    orgsCmd    `cmd:"" help:"Create, list, rename and delete organizations."`
	Migrate migrateCmd `cmd:"" help:"Bring the database to this program's schema, for a server whose role may not."`
	Memory  memoryCmd  `cmd:"" help:"List, read, write, delete and compress memory files of a running server."`
	Working workingCmd `cmd:"" help:"Show and change the working memory of a conversation of a running server."`
	Folders foldersCmd `cmd:"" help:"List, create and delete the folders of a running server."`
	Jobs    jobsCmd    `cmd:"" help:"List what a running server works on in the background, and what failed."`
	Files   filesCmd   `cmd:"" help:"List the files of a running server, read and delete them, and parse them again."`
	Grep    grepCmd    `cmd:"" help:"Look for a pattern in the files of an agent of a running server, as it does."`
	Agents  agentsCmd  `cmd:"" help:"List, create, delete, export and import agents of a running server."`
	Erase   eraseCmd   `cmd:"" help:"Erase texts or a message from all that the organization of a running server stores."`

	Handovers handoversCmd `cmd:"" help:"List the hand-overs of an agent of a running server, and decide on updates."`
	Erasures  erasuresCmd  `cmd:"" help:"List the erasures of a running server, and decide on those that agents ask for."`

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
	Sync    syncCmd    `cmd:"" help:"Make a folder of a running server hold what a directory or a list of URLs holds."`
	Health  healthCmd  `cmd:"" help:"Ask a running server for its health; exits with 1 if it has none."`
	Version versionCmd `cmd:"" help:"Print the version."`

	Export agentsExportCmd `cmd:"" help:"Write an agent to a file in Letta's format (.af), as 'agents export'."`

	Completion completionCmd `cmd:"" help:"Print how bash, zsh or fish complete this program's commands."`

	ReadDocument readDocumentCmd `cmd:"" hidden:""`               // for the server's own use
	RunJQ        runJQCmd        `cmd:"" name:"run-jq" hidden:""` // for the server's own use
	RunProgram   runProgramCmd   `cmd:"" hidden:""`               // for the server's own use
}

// run runs the program, and returns its exit code: 2 for a wrong command line or setting, 1 for other failures, and the
// code of the signal for an interrupted command.
func run(ctx context.Context, args []string, out, errs io.Writer) (code int) {
	s := streams{forTerminal(out), forTerminal(errs), os.Stdin}
	root := newProgram(func(line *cobra.Command, command runner) error {
		if err := refuseContradiction(line); err != nil {
			return err
		}
		name := commandName(line)
		if !endedBySignal[name] {
			s.in = interruptible{ctx, os.Stdin}
		}
		code = ended(ctx, errs, name, command.Run(ctx, s))
		return nil
	})
	root.SetOut(out)
	root.SetErr(errs)
	if err := runLine(ctx, root, args); err != nil {
		fmt.Fprintln(s.err, "loci:", err) // the error may repeat an argument
		return 2
	}
	return code
}

// newProgram returns the command line of Loci. run runs a command.
func newProgram(run func(*cobra.Command, runner) error) *cobra.Command {
	return newCommand("loci", "A memory server for AI agents.", reflect.ValueOf(&cli{}).Elem(), run)
}
