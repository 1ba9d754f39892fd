package recall

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/pgvector/pgvector-go"
	"golang.org/x/text/unicode/norm"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/recall/redact"
	"github.com/loci-memory/loci/recall/tokens"
)

// entry is a draft ready to be stored: checked, cleaned, redacted, and without its long tool results.
type entry struct {
	Draft
	at          int // index of the draft in the call to Append
	id          uuid.UUID
	seq         int64  // its event's seq; 0 until it has one
	digest      []byte // digest of what it says, if it has an otid
	longResults []longResult
	tokens      int
	length      int // length that session ranking uses
	searchText  string
	repeatsLog  bool // not searched: a tool read it from the log, or its turn was silent

	clips map[int]*Clip     // the Clips that long results had, by the index of their part
	tools map[string]string // names of the tools whose results it has, by call id
}

// surroundings are what an entry takes from outside of its draft.
type surroundings struct {
	now   time.Time     // the time of a draft that has none
	clips map[int]*Clip // the Clips that long results had, by the index of their part
}

// newEntry returns a draft's entry, with its long results still in its parts.
func newEntry(d Draft, r *redact.Redactor, in surroundings) (entry, error) {
	if d.CreatedAt == nil {
		d.CreatedAt = &in.now
	}
	if err := d.check(in.now); err != nil {
		return entry{}, err
	}
	e := entry{Draft: d, id: uuidOf(d.ID), repeatsLog: d.Purpose == ForFlush, clips: in.clips, tools: map[string]string{}}
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
	return e, nil
}

// fit moves the entry's long results out of its parts, and measures what stays. before is how many characters the
// results in the messages right before have in the log.
func (e *entry) fit(before int) {
	e.longResults = e.moveLongResults(before)
	e.tokens, e.length = sizeOf(e.Content, tokens.Estimate), sizeOf(e.Content, termLength)
	for _, p := range e.Content {
		e.tokens += p.SealedTokens()
	}
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

// digest returns the SHA-256 of what a message says. It tells a repetition from another message with the same otid.
// Approvals are left out, because they depend on which calls wait.
func digest(role Role, name *string, parts []Part) []byte {
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Approval = ""
	}
	raw, err := json.Marshal(struct {
		Role  Role
		Name  *string
		Parts []Part
	}{role, name, parts})
	if err != nil {
		panic("recall: a message is not JSON: " + err.Error()) // its raw JSON was parsed before
	}
	sum := sha256.Sum256(raw)
	return sum[:]
}

// digestSpelled is digest after normalization: texts that read the same have the same digest, whatever their Unicode
// form, the white space at their ends and the ids of Clips.
func digestSpelled(role Role, name *string, parts []Part) []byte {
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Text = strings.TrimRightFunc(norm.NFC.String(parts[i].Text), unicode.IsSpace)
		parts[i].Clip = nil
	}
	return digest(role, name, parts)
}

// weighed holds the weights of a text's words, and the text's terms as the index stores them. Both are nil if the text
// is not searched.
type weighed struct {
	lex   *pgvector.SparseVector
	terms []int64
}

// passage is a part of a long message with the weights of its words.
type passage struct {
	weighed
	at int // where it begins in the message's searchable text, in bytes
}

// weigh returns the weights for the entry's own row, which has the words of the first pieceBytes. If the text is long,
// passages has the weights of each of its passages.
func weigh(agent int64, e *entry) (row weighed, passages []passage) {
	if e.searchText == "" || e.repeatsLog {
		return row, nil
	}
	if e.Role == Summary { // the log has what it says, by passages
		return weighedText(agent, e.searchText, 1), nil
	}
	if row = weighedText(agent, db.Beginning(e.searchText, pieceBytes), 1); len(e.searchText) <= longBytes {
		return row, nil
	}
	at := 0
	for _, text := range passagesOf(e.searchText) {
		passages = append(passages, passage{weighedText(agent, text, passageShare), at})
		at += len(text)
	}
	return row, passages
}

// weighedText returns the weights of a text's words, times share.
func weighedText(agent int64, text string, share float32) weighed {
	lex := lexicon.Document(text)
	lex.Scale(share)
	return weighed{&lex.Vector, lexicon.Owned(agent, lex.Terms)}
}
