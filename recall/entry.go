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

	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/recall/redact"
	"github.com/loci-memory/loci/recall/tokens"
)

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

// digest returns the SHA-256 of what a message says, which distinguishes a repetition from another message of the otid.
// Approvals are left out: what they say depends on which calls wait.
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

// digestSpelled is digest of a message in one spelling of Unicode, whatever the ids of its Clips and the white space at
// the ends of its texts: texts that read the same have the same.
func digestSpelled(role Role, name *string, parts []Part) []byte {
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Text = strings.TrimRightFunc(norm.NFC.String(parts[i].Text), unicode.IsSpace)
		parts[i].Clip = nil
	}
	return digest(role, name, parts)
}

// weighed is the weights of a text's words, and its terms as the index has them; nils if the text is not searched.
type weighed struct {
	lex   *pgvector.SparseVector
	terms []int64
}

// weigh returns the weights of an entry's own row and of the pieces of its text, if it is longer than one.
func weigh(agent int64, e *entry) (own weighed, rest []weighed) {
	if e.searchText == "" || e.repeatsLog {
		return own, nil
	}
	for _, piece := range pieces(e.searchText) {
		lex := lexicon.Document(piece)
		rest = append(rest, weighed{&lex.Vector, lexicon.Owned(agent, lex.Terms)})
	}
	if len(rest) == 1 {
		return rest[0], nil
	}
	return rest[0], rest
}
