package working

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// Turn is the part of a conversation that the automatic mode has not read yet, up to the end of a turn.
type Turn struct {
	Record   Record
	Messages []recall.Message // the newest, at most MaxTurnMessages
	End      int              // position of the last one
	Window   int              // context window in tokens, which the record's limits follow; 0: unknown
}

// MaxTurnMessages is how many messages a Turn may have.
const MaxTurnMessages = 200

// LastTurn returns what the automatic mode has not read yet. ok is false if there is nothing, or the turn has not ended
// because the last message is not the model's or calls a tool.
func (s *Store) LastTurn(ctx context.Context, org db.Org, c recall.Conversation) (t Turn, ok bool, err error) {
	r, err := s.read(ctx, org, c.Key)
	if err != nil || r.Turned >= c.Messages {
		return t, false, err
	}
	from := max(r.Turned+1, c.Messages-MaxTurnMessages+1)
	t = Turn{Record: r.Record.clone(), End: c.Messages}
	t.Messages, err = s.Recall.Between(ctx, org, c, from, c.Messages)
	t.Messages = slices.DeleteFunc(t.Messages, func(m recall.Message) bool { return m.Purpose != "" })
	return t, err == nil && ended(t.Messages), err
}

// ended reports whether the last message, apart from system messages, is the model's and calls no tool.
func ended(messages []recall.Message) bool {
	for _, m := range slices.Backward(messages) {
		if m.Role != recall.System {
			return m.Role == recall.Assistant && !slices.ContainsFunc(m.Content, func(p recall.Part) bool {
				return p.Type == recall.ToolCall
			})
		}
	}
	return false
}

// TakeUp makes those of the changes that break no rule, and records that the turn has been read. If
// there are too many files, a new one replaces the first. If another server did this meanwhile, nothing changes.
func (s *Store) TakeUp(ctx context.Context, org db.Org, c recall.Conversation, turn Turn, changes []Change) error {
	end := turn.End
	author := Author{Kind: Automatic, Provenance: db.Provenance{AgentID: c.AgentID}}
	t := Target{AgentID: c.AgentID, Conversation: c.ID, Author: author, Window: turn.Window}
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		txStore := s.With(tx)
		_, err := txStore.change(ctx, org, t, func(in *Store, l log, before *row) (Record, error) {
			if before.Turned >= end {
				return before.Record, nil
			}
			after := before.Record.clone()
			for _, change := range changes {
				next, err := in.applyAll(ctx, org, l, withRoom(after, change), []Change{change})
				if errors.Is(err, db.ErrInvalid) {
					continue
				}
				if err != nil {
					return Record{}, err
				}
				after = next
			}
			return after, nil
		})
		if err != nil {
			return err
		}
		return db.Exec(ctx, tx, `
			UPDATE working_memories SET turned = greatest(turned, $3) WHERE org = $1 AND conversation_key = $2`,
			org, c.Key, end)
	})
}

// withRoom returns a record that has room for the change's file.
func withRoom(r Record, c Change) Record {
	if files := r.ImportantFiles; c.Field == ImportantFiles && len(files) >= MaxImportant && indexOf(files, c.Text) < 0 {
		r = r.clone()
		r.ImportantFiles = r.ImportantFiles[1:]
	}
	return r
}

// The names of arguments that hold a path, the old or new text of an edit, or a diff.
var (
	pathNames = regexp.MustCompile(`(?i)^(?:(?:file|notebook|target|abs|absolute|relative)?_?(?:path|file)|file_?name)s?$`)
	oldNames  = regexp.MustCompile(`(?i)^old_?(?:str|string|text|content)?$`)
	newNames  = regexp.MustCompile(`(?i)^new_?(?:str|string|text|content)?$`)
	diffNames = regexp.MustCompile(`(?i)^(?:diff|patch)$`)
)

// memoryTools matches the names of tools with paths and edits that concern memories, not files.
var memoryTools = regexp.MustCompile(`^(?:core_|archival_|update_working_)?memory`)

// The maximum length, in characters, of texts that are taken from a turn.
const (
	maxTaskChars = 200
	maxPathChars = 300
)

// Observed returns the changes that follow from a turn without a model: the files that successful tool calls name, the
// newest edit, and, if there is no task yet, the user's first request.
func Observed(t Turn) (changes []Change) {
	if t.Record.Task == nil {
		if text := firstRequest(t.Messages); text != "" {
			changes = append(changes, Change{Field: Task, Text: text})
		}
	}
	calls := callsIn(t.Messages)
	var paths []string
	edit := ""
	for _, c := range calls {
		if c.result.IsError || memoryTools.MatchString(c.Name) {
			continue
		}
		found, diff := touched(c)
		for _, path := range found {
			paths = append(slices.DeleteFunc(paths, func(p string) bool { return p == path }), path)
		}
		if diff != "" {
			edit = diff
		}
	}
	for _, path := range paths[max(0, len(paths)-MaxImportant):] {
		changes = append(changes, Change{Field: ImportantFiles, Text: path})
	}
	if edit != "" {
		changes = append(changes, Change{Field: LastEdit, Text: edit})
	}
	return changes
}

// firstRequest returns the beginning of the first user message, in one line.
func firstRequest(messages []recall.Message) string {
	for _, m := range messages {
		if m.Role != recall.User {
			continue
		}
		text := []rune(strings.Join(strings.Fields(m.Text()), " "))
		if len(text) > maxTaskChars {
			return string(text[:maxTaskChars]) + "…"
		}
		return string(text)
	}
	return ""
}

// touched returns the paths that a call names, and its edit as a diff. The diff is empty if it edits nothing.
func touched(c answered) (paths []string, diff string) {
	value, err := decoded(c.Input)
	if err != nil {
		return nil, ""
	}
	var before, after string
	edits := false
	texts("", value, func(name, text string) bool {
		switch {
		case pathNames.MatchString(name):
			if text != "" && len(text) <= maxPathChars && !strings.ContainsAny(text, lineEnds) {
				paths = append(paths, text)
			}
		case oldNames.MatchString(name):
			before, edits = text, true
		case newNames.MatchString(name):
			after, edits = text, true
		case diffNames.MatchString(name):
			diff = text
		}
		return true
	})
	if diff == "" && edits && before != after {
		if len(paths) > 0 {
			diff = "--- " + paths[0] + "\n"
		}
		diff += prefixed("-", before) + prefixed("+", after)
	}
	return paths, cutDiff(diff)
}

func prefixed(sign, text string) string {
	if text == "" {
		return ""
	}
	return sign + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+sign) + "\n"
}

// cutDiff returns as many lines of a diff as last_edit may have, and says how many are left out.
func cutDiff(diff string) string {
	lines := strings.Split(strings.Trim(diff, "\r\n"), "\n")
	for n := len(lines); n > 0; n = n * 3 / 4 {
		text := strings.Join(lines[:n], "\n")
		if n < len(lines) {
			text += fmt.Sprintf("\n(%d more lines)", len(lines)-n)
		}
		if tokens.Estimate(text) <= MaxEditTokens {
			return text
		}
	}
	return ""
}
