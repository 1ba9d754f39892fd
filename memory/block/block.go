// Package block stores core memory blocks: short texts that an agent always sees and that agents may share. It keeps
// every version of a block.
//
// Each file uses only the files named before it:
//   - blocks and their versions: block.go expected.go store.go change.go version.go
//   - changes by agents: textedit.go patch.go usercopy.go agentedit.go
//   - blocks in the file of an agent: portable.go
package block

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
)

// DefaultLimit is how many characters a block may have if it is created without a limit (Letta: 100,000).
const DefaultLimit = 100_000

// MaxLimit is the largest limit of a block, in characters.
const MaxLimit = 10_000_000

// Block is a core memory block in its current version.
type Block struct {
	Key         int64           `db:"key" json:"-"`
	ID          string          `db:"id" json:"id"`
	Label       string          `db:"label" json:"label"`
	Description *string         `db:"description" json:"description"`
	Value       string          `db:"value" json:"value"`
	Limit       int             `db:"limit_chars" json:"limit"` // maximum length of Value in characters
	ReadOnly    bool            `db:"read_only" json:"read_only"`
	Hidden      bool            `db:"hidden" json:"hidden"`
	Tags        []string        `db:"tags" json:"tags"`
	Metadata    json.RawMessage `db:"metadata" json:"metadata"`
	Template    Template        `db:"template" json:"-"`
	Version     int             `db:"version" json:"version"` // from 1; each change adds one
	CreatedAt   time.Time       `db:"created_at" json:"created_at"`
	UpdatedAt   time.Time       `db:"updated_at" json:"updated_at"`

	TemplateKey *int64 `db:"template_key" json:"-"` // of the block of which this is a user's copy; nil: it is no copy

	// AttachedBy says who attached the block to an agent. It is set only if the block was read as one of that agent's
	// blocks.
	AttachedBy *db.Provenance `db:"attached_by" json:"attached_by,omitempty" doc:"Among an agent's: who attached it."`
}

// Template marks a block that Letta's clients copy to create others. Loci stores the mark but does not use it.
type Template struct {
	IsTemplate bool    `json:"is_template,omitempty"`
	Name       *string `json:"template_name,omitempty"`
}

// SHA256 returns the SHA-256 of the block's value in hexadecimal digits.
func (b Block) SHA256() string {
	sum := sha256.Sum256([]byte(b.Value))
	return hex.EncodeToString(sum[:])
}

// OperatorAuthor is the author of changes that were made over the API, and not by an agent's tool.
const OperatorAuthor = "operator"

// New describes a block to create. A Limit of 0 means DefaultLimit.
type New struct {
	Label       string
	Value       string
	Description *string
	Limit       int
	ReadOnly    bool
	Hidden      bool
	Tags        []string
	Metadata    json.RawMessage
	Template    Template
}

// Update changes the fields that are not nil; a non-nil slice replaces the tags.
type Update struct {
	Label       *string
	Value       *string
	Description *string
	Limit       *int
	ReadOnly    *bool
	Hidden      *bool
	Tags        []string
	Metadata    json.RawMessage
}

// labels matches valid labels of a block.
var labels = regexp.MustCompile(`^[a-zA-Z0-9_/-]{1,50}$`)

// IsLabel reports whether a block may have a label.
func IsLabel(label string) bool { return labels.MatchString(label) }

func checkLabel(label string) error {
	if !IsLabel(label) {
		return db.Invalid("the label %q is not allowed: it must have from 1 to 50 letters, digits, '_', '-' and '/'",
			db.Short(label))
	}
	return nil
}

// checkSize returns ErrTooLong if a value is longer than its limit, and ErrInvalid if the limit is out of range. The
// error has the numbers. Only an operator may raise the limit.
func checkSize(label, value string, limit int, author string) error {
	if limit < 1 || limit > MaxLimit {
		return db.Invalid("the limit of block %s is %d; it must be from 1 to %d characters", label, limit, MaxLimit)
	}
	if n := utf8.RuneCountInString(value); n > limit {
		then := "Write less, or remove what is settled first."
		if author == OperatorAuthor {
			then = "Shorten the value, or raise the limit."
		}
		return db.TooLong("Edit failed: Exceeds %d character limit (requested %d) of block %s; nothing was changed. %s",
			limit, n, label, then)
	}
	return nil
}
