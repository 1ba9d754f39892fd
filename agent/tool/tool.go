// Package tool holds the tools through which a model uses its memories, and every text about them that a model reads:
// schemas, results and errors. The memory packages do not know the tools.
//
// Each file uses those that are named before it:
//   - what all tools share: memories.go schema.go argumentnames.go arguments.go argumentvalues.go
//     resulttext.go tool.go
//   - tools of programs: pythonscan.go pythontypes.go pythonmodels.go docstring.go pythonsource.go
//   - files: opencalls.go readbounds.go readgate.go openfiles.go grepgroup.go markedpattern.go grepfiles.go
//     searchfiles.go listfiles.go loadskill.go
//   - history: expand.go neighbors.go conversationsearch.go queryresult.go querylog.go asksession.go erase.go
//   - memory: changedlines.go corememory.go workingmemory.go memoryfiles.go memorytool.go archival.go searchmemory.go
//   - sub-agents, and what agents of Letta's say: startsubagent.go sendmessage.go lettatools.go
//   - the set of tools: bounds.go set.go toolset.go hints.go turns.go answer.go note.go
package tool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/db"
)

// Tool is a built-in tool of a Set, or a tool of an agent's program. A built-in tool has the same ID in every
// installation. Schema, for the model, is an object with name, description and parameters; parameters is a JSON schema.
// If NeedsFolder is true, an agent has the tool only while it has a folder; so for NeedsSkills and a folder of skills.
type Tool struct {
	ID          string
	Name        string
	Description string
	Schema      json.RawMessage
	NeedsFolder bool
	NeedsSkills bool
	ByClient    bool // the agent's program defines the tool and runs it

	reads     bool     // the tool changes nothing, and may call an embedding model
	alone     bool     // the tool has transactions of its own, and does nothing twice for the same call of a log
	grows     bool     // the tool may change what always stands in the prompt
	arguments []string // the names of its arguments, in the order of its struct

	// ahead looks up what run needs of a search, before the transaction in which run works; nil looks up nothing.
	ahead func(m Memories, ctx context.Context, c Caller, args json.RawMessage) Caller

	run func(ctx context.Context, m Memories, c Caller, args json.RawMessage) (Result, error)
}

// call runs the tool on m, like Set.Run.
func (t Tool) call(ctx context.Context, m Memories, c Caller, args json.RawMessage) (Result, error) {
	if c.Only != nil && !slices.Contains(c.Only, t.Name) {
		return Result{IsError: true, Text: fmt.Sprintf("The tool %s may not be called in this conversation, "+
			"which is a sub-agent's: the agent that gave you your task did not grant it. Those that may: %s", t.Name,
			cmp.Or(joined(c.Only), "none"))}, nil
	}
	ctx = db.WithProvenance(ctx, db.Provenance{AgentID: c.Agent.ID, ConversationID: c.Conversation, Tool: t.Name})
	var extras []string
	var err error
	if t.reads {
		args, extras, err = t.withoutExtras(args)
	}
	var result Result
	if err == nil {
		result, err = t.withRoom(ctx, m, c, args)
	}
	switch {
	case refused(err):
		result = Result{Text: failure(err), IsError: true, Overflow: errors.Is(err, db.ErrTooLong)}
	case err != nil:
		return Result{}, fmt.Errorf("run %s: %w", t.Name, err)
	}
	result.Text = capped(result.Text, cmp.Or(result.chars, MaxChars))
	if len(extras) > 0 {
		result.Text += fmt.Sprintf("\n\nNote: %s %s not used: %s takes %s.", joined(extras), were(len(extras)), t.Name,
			joined(t.arguments))
	}
	return result, nil
}

// withRoom runs the tool. If that would leave no room for messages in the caller's prompts, it returns an ErrInvalid,
// and what the tool changed in the transaction of m must be undone.
func (t Tool) withRoom(ctx context.Context, m Memories, c Caller, args json.RawMessage) (Result, error) {
	if !t.grows || m.Agents == nil {
		return t.run(ctx, m, c, args)
	}
	before, err := m.Agents.Room(ctx, c.Org, c.Agent.ID, c.Conversation)
	if err != nil {
		return Result{}, err
	}
	result, err := t.run(ctx, m, c, args)
	if err != nil || result.IsError {
		return result, err
	}
	after, err := m.Agents.Room(ctx, c.Org, c.Agent.ID, c.Conversation)
	if err != nil {
		return Result{}, err
	}
	return result, after.Check(before)
}

// withoutExtras returns a call's arguments without those that the tool does not take, and the names of these. Arguments
// that are no object stay as they are. ErrInvalid if an argument has two names with different values.
func (t Tool) withoutExtras(raw json.RawMessage) (json.RawMessage, []string, error) {
	object := unwrapped(raw)
	if len(object) == 0 || object[0] != '{' || !json.Valid(object) {
		return raw, nil, nil
	}
	given := map[string]json.RawMessage{}
	if err := json.Unmarshal(object, &given); err != nil {
		return raw, nil, err
	}
	kept, _, err := renamed(given, t.arguments, nil, ignored)
	if err != nil {
		return raw, nil, err
	}
	var extras []string
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		if !slices.Contains(t.arguments, name) && !slices.Contains(ignored, name) {
			extras = append(extras, echo(name))
			delete(kept, name)
		}
	}
	if len(extras) == 0 {
		return raw, nil, nil
	}
	out, err := json.Marshal(kept)
	return out, extras, err
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// refused reports whether a tool did nothing, for a reason that the model can act on.
func refused(err error) bool {
	_, quota := db.QuotaExceeded(err)
	return quota || errors.Is(err, db.ErrInvalid) || errors.Is(err, db.ErrNotFound) || errors.Is(err, db.ErrConflict)
}

func withFolder(t Tool) Tool {
	t.NeedsFolder = true
	return t
}

func withSkills(t Tool) Tool {
	t.NeedsSkills = true
	return t
}

func growing(t Tool) Tool {
	t.grows = true
	return t
}

func reading(t Tool) Tool {
	t.reads = true
	return t
}

func lookingAhead(t Tool, ahead func(Memories, context.Context, Caller, json.RawMessage) Caller) Tool {
	t.ahead = ahead
	return t
}

func inOwnTransaction(t Tool) Tool {
	t.alone = true
	return t
}

// define returns a built-in tool. Its schema is the one with the given name, and do runs its calls. The struct A must
// have exactly the arguments of the schema.
func define[A any](name string, do func(Memories, context.Context, Caller, A) (Result, error)) Tool {
	schema := schemaOf(name)
	return Tool{
		ID:          "tool-" + uuid.NewHash(sha256.New(), uuid.NameSpaceOID, []byte(name), 4).String(),
		Name:        schema.Name,
		Description: schema.Description,
		Schema:      schema.text,
		arguments:   argumentsOf[A](),
		run: func(ctx context.Context, m Memories, c Caller, raw json.RawMessage) (Result, error) {
			var verbatim, restored A
			var others otherNames
			for _, args := range []*A{&verbatim, &restored} {
				var err error
				if others, err = decodeNamed(name, raw, args); err != nil {
					return Result{}, err
				}
			}
			restore(reflect.ValueOf(&restored).Elem())
			result, err := do(m, ctx, c, restored)
			if refused(err) && !reflect.DeepEqual(verbatim, restored) { // the text itself may contain the marks
				if asGiven, err := do(m, ctx, c, verbatim); err == nil {
					return asGiven, nil
				}
			}
			if refused(err) {
				err = others.in(err)
			}
			return result, err
		},
	}
}

// distance returns the edit distance of two texts: how many bytes to insert, delete or replace to turn one into the
// other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
