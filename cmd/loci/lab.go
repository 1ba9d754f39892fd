package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/server/metrics"
)

// labCmd compares policies.
type labCmd struct {
	Replay labReplayCmd `cmd:"" help:"Replay recorded sessions under policies, and report what each costs and keeps."`
}

// labReplayCmd replays transcripts without a server.
type labReplayCmd struct {
	asked
	Transcripts []string `arg:"" help:"Files: chats in JSON(L), Claude Code, Codex, Pi, OpenHands, ShareGPT, .traj, .af."`
	Policy      []string `sep:"none" help:"Policies to compare: names with commas, or one in JSON; all names by default."`
	Window      []string `default:"32k" help:"Context windows in tokens, such as 32k,128k."`
	Ratio       []string `help:"Shares of each session to replay it with in addition, such as 1.0,0.5,0.3,0.2,0.1."`
	Out         string   `help:"Directory for report.json and report.html; none is written by default."`
	Model       string   `help:"Model that writes summaries, at LOCI_LLM_BASE_URL; by default rules write them."`
	Asks        int      `default:"3" help:"Of a session's questions, how many the model is asked again; 0: none."`

	InputPrice float64 `default:"3" help:"Price of a million input tokens."`
	ReadShare  float64 `default:"0.1" help:"Price of a token read from a provider's cache, as a share of that."`
	WriteShare float64 `default:"1.25" help:"Price of a token written to it, as a share of that."`

	language
}

// maxAsks bounds the questions that a model is asked again of a session. Each costs some calls with the whole session.
const maxAsks = 100

// Run replays the sessions. If it is interrupted, it prints what was done until then.
func (c labReplayCmd) Run(ctx context.Context, s streams) error {
	settings, err := c.settings(ctx)
	if err != nil {
		return err
	}
	shares, err := c.shares()
	if err != nil {
		return err
	}
	if c.Asks < 0 || c.Asks > maxAsks {
		return settingError{fmt.Errorf("--asks is %d; it must be from 0 to %d", c.Asks, maxAsks)}
	}
	sessions, broken, err := readTranscripts(ctx, c.Transcripts)
	if err != nil {
		return err
	}
	report := lab.Report{Sessions: []lab.Reported{}, Results: []lab.Result{}}
	for _, line := range broken {
		report.Broken = append(report.Broken, line.Error())
		fmt.Fprintln(s.err, "left out:", line)
	}
	if report.Policies, err = c.policies(); err != nil {
		return err
	}
	line := newProgressLine(s.err)
	for i, t := range sessions {
		of := fmt.Sprintf("session %d of %d", i+1, len(sessions))
		err := c.replay(ctx, lab.NewSession(t), labRun{settings, shares, &report, line, of, s})
		if err != nil && ctx.Err() == nil {
			return err
		}
		if report.Partial = ctx.Err() != nil; report.Partial {
			break
		}
	}
	line.end()
	if err := c.show(s, report); err != nil || report.Partial {
		return cmp.Or(err, ctx.Err())
	}
	failures := 0
	for _, r := range report.Results {
		failures += r.PairErrors
	}
	if failures > 0 {
		return fmt.Errorf("%d compactions would have lost something, and were not made", failures)
	}
	return nil
}

// show writes and prints a report.
func (c labReplayCmd) show(s streams, report lab.Report) error {
	if c.Out != "" {
		if err := report.Write(c.Out); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(s, report)
	}
	return printLab(s, report)
}

// labRun is what all sessions of a command are replayed with.
type labRun struct {
	settings []lab.Settings
	shares   []float64
	report   *lab.Report
	line     *progressLine
	of       string // which session it is
	streams  streams
}

// replay replays a session, and asks a model the agent's questions again. If ctx ends, the report has what was measured
// until then.
func (c labReplayCmd) replay(ctx context.Context, session *lab.Session, run labRun) error {
	atRatios, err := ratios(session, run.shares, run.settings[0])
	if err != nil {
		return err
	}
	report, first := run.report, len(run.report.Results)
	all := slices.Concat(run.settings, atRatios)
	for n, setting := range all {
		setting.Progress = func(done, messages int) {
			run.line.show(fmt.Sprintf("%s, replay %d of %d (%s, window %d): %d of %d messages", run.of, n+1, len(all),
				setting.Name, setting.Window, done, messages))
		}
		var r lab.Result
		r, err = lab.ReplayOf(ctx, session, setting)
		if err == nil || len(r.Turns) > 0 {
			report.Results = append(report.Results, r)
		}
		if err != nil {
			break
		}
	}
	reported := session.Quote(report.Results[first:])
	report.Sessions = append(report.Sessions, reported)
	if leftOut := reported.LeftOutText(); leftOut != "" {
		fmt.Fprintf(run.streams.err, "%s: not replayed: %s\n", reported.Name, leftOut)
	}
	if err != nil || run.settings[0].Model == nil {
		return err
	}
	return c.ask(ctx, session, run)
}

// ask asks the model the agent's questions again with shares of their context. It says before what that takes.
func (c labReplayCmd) ask(ctx context.Context, session *lab.Session, run labRun) error {
	queries := session.Queries(c.Asks)
	if len(queries) == 0 {
		return nil
	}
	read, calls := session.AskTokens(queries)
	fmt.Fprintf(run.streams.err, "%s: asking %s %d questions again, with 1.00, 0.50 and 0.20 of their context: about %d "+
		"tokens in %d calls or more (a summary that lacks something is asked for again), about %.2f at --input-price\n",
		session.Name(), c.Model, len(queries), read, calls, c.InputPrice*float64(read)/1e6)
	for i, q := range queries {
		run.line.show(fmt.Sprintf("%s, question %d of %d", run.of, i+1, len(queries)))
		answers, err := session.Ask(ctx, q, run.settings[0].Model)
		run.report.Answers = append(run.report.Answers, answers...)
		if err != nil {
			return err
		}
	}
	return nil
}

// readTranscripts reads the sessions in files, and returns what it left out because it is broken. If two files have the
// same name, their sessions are named by path.
func readTranscripts(ctx context.Context, paths []string) (sessions []transcript.Transcript, broken []*transcript.Error,
	err error) {
	names := map[string]bool{}
	for _, path := range paths {
		name := filepath.Base(path)
		if names[name] {
			name = path
		}
		names[name] = true
		f, err := openFile(ctx, path)
		if err != nil {
			return nil, nil, err
		}
		transcripts, left, err := transcript.ReadWhole(name, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, nil, err
		}
		sessions, broken = append(sessions, transcripts...), append(broken, left...)
	}
	return sessions, broken, nil
}

// shares returns the shares for ratio replays.
func (c labReplayCmd) shares() (shares []float64, err error) {
	for _, text := range c.Ratio {
		share, err := strconv.ParseFloat(text, 64)
		if err != nil || !(share > 0 && share <= 1) {
			return nil, settingError{fmt.Errorf("--ratio is %q; it must be a share such as 0.5, above 0 and at most 1", text)}
		}
		shares = append(shares, share)
	}
	return lab.Distinct(shares), nil
}

// ratios returns the settings for the ratio replays of a session.
func ratios(s *lab.Session, shares []float64, base lab.Settings) (all []lab.Settings, err error) {
	for _, share := range shares {
		settings, err := lab.AtRatio(s, share, base.Prices)
		if err != nil {
			return nil, fmt.Errorf("--ratio: %w", err)
		}
		settings.Model = base.Model
		all = append(all, settings)
	}
	return all, nil
}

// model returns the model that writes summaries; nil if none is requested.
func (c labReplayCmd) model(ctx context.Context) (*summary.Model, error) {
	if c.Model == "" {
		return nil, nil
	}
	c.language.Model = cmp.Or(c.language.Model, c.Model[strings.IndexByte(c.Model, '/')+1:])
	models, err := c.models(metrics.New(version()))
	if err != nil && c.BaseURL != "" {
		return nil, err
	}
	if models == nil {
		return nil, settingError{errors.New("--model needs LOCI_LLM_BASE_URL, the URL of the endpoint, such as " +
			"http://localhost:11434/v1")}
	}
	return models(ctx, c.Model), nil
}

// settings returns the settings for replaying each session.
func (c labReplayCmd) settings(ctx context.Context) (all []lab.Settings, err error) {
	for _, price := range []struct {
		name    string
		is, max float64
	}{{"input-price", c.InputPrice, 1e6}, {"read-share", c.ReadShare, 10}, {"write-share", c.WriteShare, 10}} {
		if math.IsNaN(price.is) || price.is < 0 || price.is > price.max {
			return nil, settingError{fmt.Errorf("--%s is %v; it must be from 0 to %.0f", price.name, price.is, price.max)}
		}
	}
	model, err := c.model(ctx)
	if err != nil {
		return nil, err
	}
	policies, err := c.policies()
	if err != nil {
		return nil, err
	}
	var windows []int
	for _, window := range c.Window {
		tokens, err := tokensOf(window)
		if err != nil {
			return nil, err
		}
		windows = append(windows, tokens)
	}
	if len(windows) == 0 {
		return nil, settingError{errors.New("--window is empty; give it numbers of tokens such as 32k,128k, or leave it " +
			"out")}
	}
	for _, tokens := range lab.Distinct(windows) {
		for _, p := range policies {
			all = append(all, lab.Settings{Name: p.Name, Policy: p.Policy, Window: tokens, Model: model,
				Prices: policy.CachePrices{Input: c.InputPrice, Read: c.ReadShare, Write: c.WriteShare}})
		}
	}
	return all, nil
}

// policies returns the policies to compare.
func (c labReplayCmd) policies() ([]lab.Compared, error) {
	var texts []json.RawMessage
	for _, value := range c.Policy {
		names := []string{value}
		if !strings.HasPrefix(strings.TrimSpace(value), "{") {
			names = strings.Split(value, ",")
		}
		for _, name := range names {
			texts = append(texts, policy.Written(strings.TrimSpace(name)))
		}
	}
	all, err := lab.Policies(texts)
	if err != nil {
		return nil, settingError{err}
	}
	return all, nil
}

// tokensOf parses a number of tokens, such as 32000, 32k or 1M.
func tokensOf(text string) (int, error) {
	number, times := text, 1
	for suffix, n := range map[string]int{"k": 1_000, "K": 1_000, "m": 1_000_000, "M": 1_000_000} {
		if digits, ok := strings.CutSuffix(text, suffix); ok {
			number, times = digits, n
		}
	}
	n, err := strconv.Atoi(number)
	if err != nil || n > lab.MaxWindow/times || n*times < lab.MinWindow {
		return 0, settingError{fmt.Errorf("--window is %q; it must be a number of tokens such as 32000, 32k or 1M, from %d "+
			"to %d", text, lab.MinWindow, lab.MaxWindow)}
	}
	return n * times, nil
}
