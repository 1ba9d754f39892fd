package recall

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
)

// Limits of a draft and of a call to Append.
const (
	MaxMessages   = 10_000   // messages per call
	MaxParts      = 1_000    // parts per message
	MaxPartBytes  = 16 << 20 // bytes per part's text
	maxIDBytes    = 512      // bytes of an otid, a name or a tool call's id
	maxFutureSkew = 24 * time.Hour
)

// Draft is a message to append. Within an agent's log each OTID is unique.
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
	Refused   *Refused   // set on the copy of a refused message
	CreatedAt *time.Time // when it was said; nil means now

	Provenance *db.Provenance // nil means the append's provenance

	// SharedClips belong to the parts of a copy that shares long results with its original; nil makes new Clips.
	SharedClips []*Clip
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

// Check returns ErrInvalid for a draft that Append refuses whatever the log contains.
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
	if at := d.CreatedAt; at != nil && (at.After(now.Add(maxFutureSkew)) || at.Year() < 1900) {
		return db.Invalid("created_at is %s: a message cannot be from the future, or from before 1900",
			at.Format(time.RFC3339))
	}
	return nil
}

// partsOf lists the types of parts that a message may have, by its role.
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

// checkImage returns ErrInvalid for an image source that every provider refuses.
func checkImage(source json.RawMessage) error {
	var s struct{ Type, URL, Data string }
	_ = json.Unmarshal(source, &s) // JSON that is not a source leaves the type empty
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
