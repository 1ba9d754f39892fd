package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/loci-memory/loci/db"
)

// doctorCmd examines what a server needs, and advises. A running server examines itself, with its own settings. If none
// answers, doctor examines with the settings of this command.
type doctorCmd struct {
	serving
	asked
	URL string `name:"url" env:"LOCI_URL" help:"Address or URL of the running server to ask, in place of --addr."`
	Own bool   `name:"own-settings" help:"Ask no running server: examine what a server with these settings would need."`

	Line *cobra.Command
}

// errUnwell ends the command with exit code 1 after its findings.
var errUnwell = errors.New("something is broken: see what to do above")

func (c doctorCmd) Run(ctx context.Context, s streams) error {
	var list []db.Finding
	for _, name := range unknownSettings(c.Line.Root(), os.Environ()) {
		list = append(list, db.MakeFinding("settings", db.Advice, notASetting(name), "correct its name, or unset it"))
	}
	answered := false
	if !c.Own {
		var findings []db.Finding
		findings, answered = c.askServer(ctx, settingsOf(c.Line, os.LookupEnv))
		list = append(list, findings...)
	}
	if !answered {
		loopback, settings := c.examineSettings(ctx, s)
		list = append(list, settings...)
		log, err := logger(s, "error", "text")
		if err != nil {
			log = slog.New(slog.DiscardHandler) // another finding names the error
		}
		list = append(list, c.examine(ctx, loopback, func(ctx context.Context) (opened, error) {
			if c.URL != "" && !c.Own {
				return c.runningOrURL(ctx, log)
			}
			return c.runningOrOpen(ctx, log)
		})...)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.print(s, list); err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(f db.Finding) bool { return f.State == db.Broken }) {
		return errUnwell
	}
	return nil
}

func (c doctorCmd) print(s streams, list []db.Finding) error {
	if c.JSON {
		return printJSON(s, list)
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for i, f := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.State, f.Of, f.Text)
		repeats := i+1 < len(list) && list[i+1].Remedy == f.Remedy // repeats after the last finding with this remedy
		if f.Remedy != "" && !repeats {
			fmt.Fprintf(w, "\t\t→ %s\n", f.Remedy)
		}
	}
	return w.Flush()
}

// examineSettings checks the settings as 'loci serve' does. loopback reports whether only this machine could reach the
// server.
func (c doctorCmd) examineSettings(ctx context.Context, s streams) (loopback bool, list []db.Finding) {
	_, err := logger(s, c.LogLevel, c.LogFormat)
	configuration, errs := c.configure(ctx, slog.New(slog.DiscardHandler))
	defer configuration.tracing.close(ctx)
	all := []error{err}
	if joined, several := errs.(interface{ Unwrap() []error }); several {
		all = append(all, joined.Unwrap()...)
	}
	for _, err := range all {
		if err != nil {
			list = append(list, broken("settings", err, "correct it: the server does not start so"))
		}
	}
	return configuration.loopback, list
}
