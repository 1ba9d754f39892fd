package working

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// log is the conversation of a record that is being changed, at one moment.
type log struct {
	recall.Conversation
	last     int64 // position of its newest message in the agent's log
	compared *int  // up to which position evidence has been compared with messages
	window   int   // that the record's limits follow; 0: unknown
}

// foldersIn is the reach of the files that entries of a conversation are based on.
func foldersIn(c recall.Conversation) files.Reach {
	return files.Reach{AgentID: c.AgentID, Users: db.OfUser(c.UserKey)}
}

// restsAt records that an entry is based on the call result at a position.
func (l log) restsAt(position int) { *l.compared = min(*l.compared, position) }

// searched is how many of the newest messages are searched for a call that a change names.
const searched = 300

// answered is a tool call with its result.
type answered struct {
	recall.Part             // the call
	result      recall.Part // its result
	seq         int64       // of the result, in the agent's log
	called      int         // position of the call in the conversation
	position    int         // position of the result in the conversation
}

// callsIn returns the tool calls that have results among the messages, in the order of the results.
func callsIn(messages []recall.Message) []answered {
	return answersIn(messages, recall.OpenCalls[answered]{})
}

// answersIn is callsIn for messages that follow others, whose calls without a result are open. It keeps open up to
// date.
func answersIn(messages []recall.Message, open recall.OpenCalls[answered]) (calls []answered) {
	for _, m := range messages {
		for _, p := range m.Content {
			switch p.Type {
			case recall.ToolCall:
				open.Add(p.CallID, answered{Part: p, called: m.Position})
			case recall.ToolReturn:
				if c, ok := open.Answer(p.CallID); ok && !p.Orphan {
					c.result, c.seq, c.position = p, m.Seq, m.Position
					calls = append(calls, c)
				}
			}
		}
	}
	return calls
}

// evidence returns the evidence of an entry that is based on this call.
func (a answered) evidence() *Evidence {
	return &Evidence{Kind: OfCall, Name: a.Name, Arguments: hashOf(canonical(a.Input)), SHA256: hashOfResult(a.result)}
}

// repeats reports whether this call is the same as the call of an entry's evidence.
func (a answered) repeats(e *Evidence) bool {
	return e.Kind == OfCall && e.Name == a.Name && e.Arguments == hashOf(canonical(a.Input))
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// hashOfResult returns a hash of a result: of its whole text, and of whether it is an error.
func hashOfResult(p recall.Part) string {
	whole := hashOf(p.Text)
	if p.Clip != nil {
		whole = p.Clip.SHA256
	}
	if p.IsError {
		return hashOf("error " + whole)
	}
	return whole
}

// canonical returns JSON arguments with sorted names and without spaces. Anything else it returns unchanged.
func canonical(arguments string) string {
	value, err := decoded(arguments)
	if err != nil {
		return arguments
	}
	text, err := json.Marshal(value)
	if err != nil {
		return arguments
	}
	return string(text)
}

func decoded(arguments string) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(arguments)))
	d.UseNumber()
	err = d.Decode(&value)
	return value, err
}

// texts calls do with each text in a JSON value and the name of its field, until do returns false.
func texts(name string, value any, do func(name, text string) bool) bool {
	switch value := value.(type) {
	case string:
		return do(name, value)
	case []any:
		for _, v := range value {
			if !texts(name, v, do) {
				return false
			}
		}
	case map[string]any:
		for _, key := range sortedKeys(value) {
			if !texts(key, value[key], do) {
				return false
			}
		}
	}
	return true
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// has reports whether a text is one of the values in a call's arguments.
func (a answered) has(text string) bool {
	value, err := decoded(a.Input)
	return err == nil && !texts("", value, func(_, v string) bool { return v != text })
}

// position matches a position in the log that a change gives as evidence.
var position = regexp.MustCompile(`^\[?(?:seq )?(\d{1,18})\]?$`)

// entry returns the entry of a change with its evidence. ErrInvalid if the named evidence does not exist.
func (s *Store) entry(ctx context.Context, org db.Org, l log, c Change) (Entry, error) {
	e := Entry{Text: c.Text, Seq: l.last}
	switch given := strings.TrimSpace(c.Evidence); {
	case given != "":
		found, err := s.rest(ctx, org, l, &e, given)
		if err == nil && !found {
			err = db.Invalid("There is no evidence %q: give the number of a position in this conversation, the name of a file "+
				"of your folders, or a value of the arguments of a recent call, such as a command or a path.", db.Short(given))
		}
		return e, err
	case c.labelled != "":
		_, err := s.rest(ctx, org, l, &e, c.labelled)
		return e, err
	case c.Field == ImportantFiles:
		_, err := s.rest(ctx, org, l, &e, c.Text)
		return e, err
	}
	return e, nil
}

// rest sets an entry's evidence from a text: a position, a file, or a value among the arguments of a call.
func (s *Store) rest(ctx context.Context, org db.Org, l log, e *Entry, text string) (found bool, err error) {
	if m := position.FindStringSubmatch(text); m != nil {
		seq, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			return false, err
		}
		return s.restOnMessage(ctx, org, l, e, seq)
	}
	hashes, err := s.Files.Hashes(ctx, org, foldersIn(l.Conversation), []string{text})
	if err != nil {
		return false, err
	}
	if hash, ok := hashes[text]; ok {
		e.Evidence = &Evidence{Kind: OfFile, Name: text, SHA256: hash}
		return true, nil
	}
	messages, err := s.Recall.Between(ctx, org, l.Conversation, l.Messages-searched+1, l.Messages)
	if err != nil {
		return false, err
	}
	calls := callsIn(messages)
	for _, c := range slices.Backward(calls) {
		if c.has(text) {
			e.Seq, e.Evidence = c.seq, c.evidence()
			l.restsAt(c.position)
			return true, nil
		}
	}
	return false, nil
}

// restOnMessage sets an entry's evidence to the message at a position of the agent's log; if the message has a call's
// result, to that result.
func (s *Store) restOnMessage(ctx context.Context, org db.Org, l log, e *Entry, seq int64) (bool, error) {
	messagePosition, err := s.Recall.PositionOf(ctx, org, l.Conversation, seq)
	if errors.Is(err, db.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	messages, err := s.Recall.Between(ctx, org, l.Conversation, messagePosition-searched, messagePosition)
	if err != nil {
		return false, err
	}
	e.Seq = seq
	calls := callsIn(messages)
	calls = slices.DeleteFunc(calls, func(c answered) bool { return c.position != messagePosition })
	if len(calls) == 1 {
		e.Evidence = calls[0].evidence()
		l.restsAt(messagePosition)
	}
	return true, nil
}
