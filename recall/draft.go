package recall

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/redact"
	"github.com/loci-memory/loci/recall/tokens"
)

// Limits of a draft and of a call of Append.
const (
	MaxMessages   = 10_000   // messages of a call
	MaxParts      = 1_000    // parts of a message
	MaxPartBytes  = 16 << 20 // bytes of a part's text
	maxIDBytes    = 512      // bytes of an otid, a name, the id of a tool call
	maxFutureSkew = 24 * time.Hour
)

// Draft is a message to append. An agent's log has at most one message of each OTID.
type Draft struct {
	ID        string // message- and a UUID; empty to choose one
	Role      Role
	Name      *string
	Content   []Part
	OTID      *string // the caller's own id of the message
	StepID    *string
	RunID     *string
	SenderID  *string
	GroupID   *string
	Model     *string
	IsErr     bool
	Purpose   string     // ForFlush, or empty
	Refused   *Refused   // of a copy
	CreatedAt *time.Time // when it was said; nil means now

	Provenance *db.Provenance // nil is that of the append

	// SharedClips are those of the parts of a copy that shares long results with its original; nil makes new ones.
	SharedClips []*Clip
}

// entry is a draft ready to be stored: checked, cleaned, redacted, and without its long tool results.
type entry struct {
	Draft
	at          int // index of the draft in its call
	id          uuid.UUID
	seq         int64  // of its event; 0 until it has one
	digest      []byte // of what it says, if it has an otid
	longResults []longResult
	tokens      int
	length      int // by which sessions are ranked
	searchText  string
	repeatsLog  bool // a tool read it from the log, or it is of a silent turn, so it is not searched
}

// newEntry returns the entry of a draft. now is its time if it has none. clips are ids for the Clips of its long
// results, by the index of the part; nil chooses them.
func newEntry(d Draft, r *redact.Redactor, now time.Time, clips map[int]string) (entry, error) {
	if d.CreatedAt == nil {
		d.CreatedAt = &now
	}
	if err := d.check(now); err != nil {
		return entry{}, err
	}
	e := entry{Draft: d, id: uuidOf(d.ID), repeatsLog: d.Purpose == ForFlush}
	if e.id == uuid.Nil {
		e.id = uuid.New()
	}
	e.Content = make([]Part, len(d.Content))
	for i, p := range d.Content {
		if err := p.check(d.Role); err != nil {
			return entry{}, err
		}
		p.clean(r)
		if err := p.cleanJSON(r); err != nil {
			return entry{}, err
		}
		if d.SharedClips != nil {
			p.Clip = d.SharedClips[i]
		}
		e.Content[i] = p
	}
	for _, f := range e.fields() {
		if *f.value != nil {
			*f.value = new(cleanedID(**f.value, r))
		}
	}
	if e.OTID != nil {
		e.digest = digest(e.Role, e.Name, e.Content)
	}
	e.Refused = d.Refused.cleaned(r)
	e.searchText = searchText(e.Role, e.Name, e.Content)
	e.longResults = moveLongResults(e.Content, clips)
	e.tokens, e.length = sizeOf(e.Content, tokens.Estimate), sizeOf(e.Content, termLength)
	for _, p := range e.Content {
		e.tokens += p.SealedTokens()
	}
	return e, nil
}

func (e *entry) bytes() (n int) {
	for _, p := range e.Content {
		n += len(p.Text) + len(p.Input) + len(p.Data) + len(p.Source) + len(p.Item) + len(p.Extra)
		for _, image := range p.Images {
			n += len(image)
		}
	}
	for _, r := range e.longResults {
		n += len(r.bytes)
	}
	return n + len(e.searchText)
}

type draftField struct {
	name  string
	value **string
}

// fields are a draft's short texts.
func (d *Draft) fields() []draftField {
	return []draftField{{"name", &d.Name}, {"otid", &d.OTID}, {"step_id", &d.StepID}, {"run_id", &d.RunID},
		{"sender_id", &d.SenderID}, {"group_id", &d.GroupID}, {"model", &d.Model}}
}

// Check returns ErrInvalid for a draft that Append refuses by itself, whatever the log has.
func (d *Draft) Check() error {
	if err := d.check(time.Now()); err != nil {
		return err
	}
	for _, p := range d.Content {
		if err := p.check(d.Role); err != nil {
			return err
		}
	}
	return nil
}

func (d *Draft) check(now time.Time) error {
	if partsOf[d.Role] == nil {
		return db.Invalid("role is %q; it must be one of system, user, assistant, tool", db.Short(string(d.Role)))
	}
	if d.Purpose != "" && d.Purpose != ForFlush {
		return db.Invalid("purpose is %q; it must be %s, or empty", db.Short(d.Purpose), ForFlush)
	}
	if len(d.Content) > MaxParts {
		return db.Invalid("a message has %d parts; it may have at most %d", len(d.Content), MaxParts)
	}
	for _, f := range d.fields() {
		if *f.value != nil && len(**f.value) > maxIDBytes {
			return db.Invalid("%s has %d bytes; it may have at most %d", f.name, len(**f.value), maxIDBytes)
		}
	}
	if d.CreatedAt.After(now.Add(maxFutureSkew)) || d.CreatedAt.Year() < 1900 {
		return db.Invalid("created_at is %s: a message cannot be from the future, or from before 1900",
			d.CreatedAt.Format(time.RFC3339))
	}
	return nil
}

// partsOf lists the types of the parts that a message of a role can have.
var partsOf = map[Role][]PartType{
	System: {Text, Image},
	User:   {Text, Image},
	Assistant: {Text, Image, ToolCall, Reasoning, RedactedReasoning, OmittedReasoning, SummarizedReasoning,
		AnthropicBlock, ResponsesItem},
	Tool:    {ToolReturn},
	Summary: {Text},
}

func (p *Part) check(role Role) error {
	if !slices.Contains(partsOf[role], p.Type) {
		return db.Invalid("a message of role %s cannot have a part of type %q", role, db.Short(string(p.Type)))
	}
	for _, text := range []string{p.Text, p.Input, p.Signature, p.Data, p.Item, p.Extra, string(p.Source),
		string(p.Summary)} {
		if len(text) > MaxPartBytes {
			return db.Invalid("a part has %d bytes; it may have at most %d", len(text), MaxPartBytes)
		}
	}
	if n := len(p.ImagesAt); n > 0 && (n != len(p.Images) || !slices.IsSorted(p.ImagesAt) || p.ImagesAt[0] < 0) {
		return db.Invalid("images_at has %d places for %d images; it must have one each, in their order", n, len(p.Images))
	}
	for _, image := range append(slices.Clip(p.Images), p.Source) {
		if len(image) > MaxPartBytes {
			return db.Invalid("an image has %d bytes; it may have at most %d", len(image), MaxPartBytes)
		}
		if err := checkImage(image); err != nil {
			return err
		}
	}
	if (p.Type == ToolCall || p.Type == ToolReturn) && (p.CallID == "" || len(p.CallID) > maxIDBytes) {
		return db.Invalid("the id of a tool call has %d bytes; it must have from 1 to %d", len(p.CallID), maxIDBytes)
	}
	if p.Approval != "" && !slices.Contains(approvalsOf[p.Type], p.Approval) {
		return db.Invalid("a part of type %q cannot have the approval %q", p.Type, db.Short(string(p.Approval)))
	}
	if p.Kind != "" && !slices.Contains(kindsOf[p.Type], p.Kind) {
		return db.Invalid("a part of type %q cannot have the kind %q", p.Type, db.Short(string(p.Kind)))
	}
	if p.Type == ToolCall && (p.Name == "" || len(p.Name) > maxIDBytes) {
		return db.Invalid("the name of a called tool has %d bytes; it must have from 1 to %d", len(p.Name), maxIDBytes)
	}
	return nil
}

// checkImage returns ErrInvalid for the source of an image that every provider refuses.
func checkImage(source json.RawMessage) error {
	var s struct{ Type, URL, Data string }
	_ = json.Unmarshal(source, &s) // JSON that is not a source has no type
	data := s.Data
	switch s.Type {
	case "url":
		scheme, _, _ := strings.Cut(s.URL, ":")
		if !slices.Contains([]string{"http", "https", "data"}, strings.ToLower(scheme)) {
			return db.Invalid("the url of an image is %q; it must begin with http://, https:// or data:", db.Short(s.URL))
		}
		_, data, _ = strings.Cut(s.URL, ";base64,")
	case "base64":
	default:
		return nil
	}
	if _, err := base64.StdEncoding.DecodeString(data); err != nil {
		return db.Invalid("the data of an image is no base64: %v", err)
	}
	return nil
}

// clean redacts and cleans a part's texts, in copies of its slices, and resets the fields that only Loci sets.
func (p *Part) clean(r *redact.Redactor) {
	p.Clip, p.Orphan = nil, false
	said := p.Text
	cleaned := func(text string) string { return r.Redact(db.Clean(text)) }
	p.ReplaceText(cleaned(p.Text), cleaned)
	p.Input = CleanEscapes(cleaned(p.Input))
	if p.Type == Reasoning && p.Text != said {
		p.Signature = "" // it is that of another text, and its provider would refuse it
	}
	if (p.Type == Text || p.Type == Reasoning) && p.Text != said {
		p.Extra = "" // likewise
	}
	p.CallID, p.Name = cleanedID(p.CallID, r), cleanedID(p.Name, r)
	for _, text := range []*string{&p.Signature, &p.Data} {
		*text = db.Clean(*text)
	}
	for _, lines := range []*[]string{&p.Stdout, &p.Stderr} {
		*lines = slices.Clone(*lines)
		for i, line := range *lines {
			(*lines)[i] = r.Redact(db.Clean(line))
		}
	}
}

// cleanedID redacts and cleans a name or an id. It changes a placeholder's brackets and colons, which providers refuse
// in names, to underscores.
func cleanedID(id string, r *redact.Redactor) string {
	id = db.Clean(id)
	redacted := r.Redact(id)
	if redacted == id {
		return id
	}
	return strings.Trim(strings.Map(func(c rune) rune {
		if c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '_'
	}, redacted), "_")
}
