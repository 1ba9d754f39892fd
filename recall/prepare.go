package recall

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/redact"
)

// Bounds of a message and of a call of Append.
const (
	MaxMessages   = 10_000   // of a call
	MaxParts      = 1_000    // of a message
	MaxPartBytes  = 16 << 20 // of a part's text
	maxIDBytes    = 512      // of an otid, a name, the id of a call
	maxFutureSkew = 24 * time.Hour
)

// prepared is a message ready to be stored: cleaned, redacted, its long results put aside.
type prepared struct {
	Draft
	id     uuid.UUID
	digest []byte // of what was said, where it has an otid
	blobs  []blob
	tokens int
	search string // what a search finds it by
	echo   bool   // it repeats what the log has elsewhere, and is not searched
}

// prepare checks a message and makes what is stored of it. at is its time if it says none.
func prepare(n Draft, r *redact.Redactor, at time.Time) (prepared, error) {
	if belongs[n.Role] == nil {
		return prepared{}, db.Invalid("role is %q; it must be one of system, user, assistant, tool", short(string(n.Role)))
	}
	if len(n.Content) > MaxParts {
		return prepared{}, db.Invalid("a message has %d parts; it may have at most %d", len(n.Content), MaxParts)
	}
	for name, value := range map[string]*string{"name": n.Name, "otid": n.OTID, "step_id": n.StepID, "run_id": n.RunID,
		"sender_id": n.SenderID, "group_id": n.GroupID, "model": n.Model} {
		if value != nil && len(*value) > maxIDBytes {
			return prepared{}, db.Invalid("%s has %d bytes; it may have at most %d", name, len(*value), maxIDBytes)
		}
	}
	m := prepared{Draft: n, id: uuid.New()}
	m.Content = make([]Part, len(n.Content))
	for i, p := range n.Content {
		part, err := cleaned(p, n.Role, r)
		if err != nil {
			return prepared{}, err
		}
		m.Content[i] = part
	}
	for _, field := range []**string{&m.Name, &m.OTID, &m.StepID, &m.RunID, &m.SenderID, &m.GroupID, &m.Model} {
		*field = cleanField(*field)
	}
	if m.CreatedAt == nil {
		m.CreatedAt = &at
	} else if m.CreatedAt.After(at.Add(maxFutureSkew)) || m.CreatedAt.Year() < 1900 {
		return prepared{}, db.Invalid("created_at is %s: a message cannot be from the future, or from before 1900",
			m.CreatedAt.Format(time.RFC3339))
	}
	if m.OTID != nil {
		m.digest = digest(m.Role, m.Name, m.Content)
	}
	m.search = searchable(m.Role, m.Name, m.Content)
	m.blobs = clip(m.Content)
	m.tokens = tokensOf(m.Content)
	return m, nil
}

// short is the beginning of what a caller wrote, to repeat it.
func short(s string) string {
	if len(s) > 100 {
		return strings.ToValidUTF8(s[:100], "") + "…"
	}
	return s
}

func cleanField(s *string) *string {
	if s == nil {
		return nil
	}
	c := db.Clean(*s)
	return &c
}

// belongs says which parts a message of a role can have.
var belongs = map[Role][]PartType{
	System:    {Text, Image},
	User:      {Text, Image},
	Assistant: {Text, Image, ToolCall, Reasoning, RedactedReasoning, OmittedReasoning, SummarizedReasoning},
	Tool:      {ToolReturn},
	Summary:   {Text},
}

// cleaned checks a part, and redacts and cleans its texts.
func cleaned(p Part, role Role, r *redact.Redactor) (Part, error) {
	if !slices.Contains(belongs[role], p.Type) {
		return Part{}, db.Invalid("a message of role %s cannot have a part of type %q", role, short(string(p.Type)))
	}
	for _, text := range []string{p.Text, p.Input, p.Signature, p.Data, string(p.Source), string(p.Summary)} {
		if len(text) > MaxPartBytes {
			return Part{}, db.Invalid("a part has %d bytes; it may have at most %d", len(text), MaxPartBytes)
		}
	}
	for _, image := range p.Images {
		if len(image) > MaxPartBytes {
			return Part{}, db.Invalid("an image has %d bytes; it may have at most %d", len(image), MaxPartBytes)
		}
	}
	if (p.Type == ToolCall || p.Type == ToolReturn) && (p.CallID == "" || len(p.CallID) > maxIDBytes) {
		return Part{}, db.Invalid("the id of a tool call has %d bytes; it must have from 1 to %d", len(p.CallID), maxIDBytes)
	}
	if p.Type == ToolCall && (p.Name == "" || len(p.Name) > maxIDBytes) {
		return Part{}, db.Invalid("the name of a called tool has %d bytes; it must have from 1 to %d", len(p.Name), maxIDBytes)
	}
	p.Clip, p.Orphan = nil, false
	for _, text := range []*string{&p.Text, &p.Input} {
		*text = r.Redact(db.Clean(*text))
	}
	for _, text := range []*string{&p.CallID, &p.Name, &p.Signature, &p.Data} {
		*text = db.Clean(*text)
	}
	for _, lines := range []*[]string{&p.Stdout, &p.Stderr} {
		*lines = slices.Clone(*lines)
		for i, line := range *lines {
			(*lines)[i] = r.Redact(db.Clean(line))
		}
	}
	return p, cleanRaws(&p, r)
}

// digest tells what was said, so that an otid that comes again can be told from one that is used twice.
func digest(role Role, name *string, parts []Part) []byte {
	raw, err := json.Marshal(struct {
		Role  Role
		Name  *string
		Parts []Part
	}{role, name, parts})
	if err != nil {
		panic("recall: a message is not JSON: " + err.Error()) // raw parts were parsed before
	}
	sum := sha256.Sum256(raw)
	return sum[:]
}
