package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
)

// labCmd compares policies.
type labCmd struct {
	Replay labReplayCmd `cmd:"" help:"Replay recorded sessions under policies, and report what each costs and keeps."`
}

// labReplayCmd replays transcripts without a server and without a model.
type labReplayCmd struct {
	Transcripts []string `arg:"" help:"Files: OpenAI's or Anthropic's JSON(L), Claude Code, Pi, OpenClaw, .traj, .af."`
	Policy      []string `help:"Policies to compare, separated by commas; all that have a name by default."`
	Window      []string `default:"32k" help:"Context windows in tokens, such as 32k,128k."`
	Out         string   `help:"Directory for report.json and report.html; none is written by default."`

	InputPrice float64 `default:"15" help:"Price of a million input tokens."`
	ReadShare  float64 `default:"0.1" help:"Price of a token read from a provider's cache, as a share of that."`
	WriteShare float64 `default:"1.25" help:"Price of a token written to it, as a share of that."`
}

// Run implements the command.
func (c labReplayCmd) Run(ctx context.Context, s streams) error {
	settings, err := c.settings()
	if err != nil {
		return err
	}
	var sessions []transcript.Transcript
	for _, path := range c.Transcripts {
		f, err := os.Open(path) // #nosec G304 -- the user names it
		if err != nil {
			return err
		}
		read, err := transcript.Read(filepath.Base(path), f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		sessions = append(sessions, read...)
	}
	var results []lab.Result
	for _, session := range sessions {
		for _, under := range settings {
			r, err := lab.Replay(ctx, session, under)
			if err != nil {
				return err
			}
			results = append(results, r)
		}
	}
	if c.Out != "" {
		if err := lab.WriteReport(c.Out, results); err != nil {
			return err
		}
	}
	return printReplays(s, results)
}

// settings returns what to replay each session under.
func (c labReplayCmd) settings() (all []lab.Settings, err error) {
	names := c.Policy
	if len(names) == 0 {
		for _, p := range policy.Presets() {
			names = append(names, p.Name)
		}
	}
	for _, window := range c.Window {
		tokens, err := tokensOf(window)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			p, err := policy.Preset(name)
			if err != nil {
				return nil, err
			}
			all = append(all, lab.Settings{Name: name, Policy: p, Window: tokens,
				Prices: policy.CachePrices{Input: c.InputPrice, Read: c.ReadShare, Write: c.WriteShare}})
		}
	}
	return all, nil
}

// tokensOf reads a number of tokens, such as 32000, 32k or 1M.
func tokensOf(text string) (int, error) {
	number, times := text, 1
	for suffix, n := range map[string]int{"k": 1_000, "K": 1_000, "m": 1_000_000, "M": 1_000_000} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			number, times = rest, n
		}
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > 100_000_000/times {
		return 0, fmt.Errorf("--window is %q; it must be a number of tokens such as 32000, 32k or 1M", text)
	}
	return n * times, nil
}

func printReplays(s streams, results []lab.Result) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tWINDOW\tPOLICY\tTURNS\tTOKENS\tMOST\tCACHED COST\tCOST\tPREFIX KEPT\tCOMPACTIONS\tIN VIEW\t"+
		"EXPAND\tSEARCH\tLOST")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%d\t%d\t%.2f\t%.2f\t%.0f %%\t%d\t%.1f %%\t%d\t%d\t%d\n", r.Session, r.Window,
			r.Policy, len(r.Turns), r.Tokens, r.Most, r.CachedCost, r.Cost, 100*r.KeptShare, r.Compactions,
			100*r.Evidence.Share(),
			r.Evidence.Expand, r.Evidence.Search, r.Evidence.Lost)
	}
	broken := 0
	for _, r := range results {
		broken += r.PairErrors
	}
	if err := w.Flush(); broken > 0 || err != nil {
		return cmp.Or(err, fmt.Errorf("%d compactions would have lost something, and were not made", broken))
	}
	return nil
}
