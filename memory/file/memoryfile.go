// Package file stores memory files: trees of paths under /memories that one or several agents read and write. It keeps
// every version of a file, and refuses changes that the rules of a tree's index do not allow.
//
// Each file uses only the files named before it:
//   - texts, paths, and the types of trees and files: edit.go path.go memoryfile.go
//   - the rules of an index: telling.go pointer.go manifest.go duplicate.go rawerror.go rules.go
//   - trees, and the parts of files that are embedded: tree.go usertree.go chunk.go
//   - files and their changes: file.go enforce.go editor.go version.go validity.go portable.go
//   - work on an index: lint.go newindex.go sorting.go compress.go reaching.go addline.go
//   - vectors and search: backlog.go embedding.go reembed.go search.go
//   - erasures: erase.go redact.go
package file

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
)

// Limits of a tree.
const (
	MaxFileBytes = 102_400
	MaxFiles     = 1_000
	MaxTreeBytes = 10 << 20 // all files of a tree together
)

// Tree is a tree of memory files.
type Tree struct {
	Key         int64      `db:"key" json:"-"`
	ID          string     `db:"id" json:"id"`
	Name        string     `db:"name" json:"name"`
	Description *string    `db:"description" json:"description"`
	Rules       IndexRules `db:"rules" json:"rules"`
	CreatedAt   time.Time  `db:"created_at" json:"created_at"`
	UpdatedAt   time.Time  `db:"updated_at" json:"updated_at"`

	// Vectors counts the files that wait and the parts that were refused. It is nil without an embeddings endpoint.
	Vectors *endpoint.Status `db:"embedding_status" json:"embedding_status,omitempty"`
}

// Attached is the tree of an agent.
type Attached struct {
	Tree
	ReadOnly bool `db:"read_only" json:"read_only"` // the agent's tool may not change it
}

// Entry is a file of a tree without its content.
type Entry struct {
	Key       int64     `db:"key" json:"-"`
	ID        string    `db:"id" json:"id"` // does not change when the file is renamed
	Path      string    `db:"path" json:"path"`
	SHA256    string    `db:"sha256" json:"sha256"` // of the content, in hexadecimal digits
	SizeBytes int       `db:"size_bytes" json:"size_bytes"`
	Version   int       `db:"version" json:"version"` // from 1; each change adds one
	CreatedAt time.Time `db:"created_at" json:"created_at"`
	UpdatedAt time.Time `db:"updated_at" json:"updated_at"`

	Folded string `db:"folded" json:"-"`

	db.Validity
	SupersededBy *string `db:"superseded_by" json:"superseded_by" doc:"The path of the file that took its place."`
	Ended        bool    `db:"ended" json:"ended" doc:"It holds no longer."` // when the file was read
	Successor    *int64  `db:"successor" json:"-"`
}

// File is a file of a tree.
type File struct {
	Entry
	Content    string         `db:"content" json:"content"`
	Provenance *db.Provenance `db:"provenance" json:"provenance" doc:"Who made the newest version."`
}

// At names a tree and who works in it: the agent in Author, or an operator if Author names no agent.
type At struct {
	Org    db.Org
	Tree   string // id of the tree
	Author db.Provenance
}

// MismatchError says that a file is not as a change expects. errors.Is finds ErrConflict in it. Current is the file as
// it is. Version is the expected version; 0 if the change expects a text.
type MismatchError struct {
	Current File
	Version int
}

func (e *MismatchError) Error() string {
	if e.Version > 0 {
		return fmt.Sprintf("%s is at version %d, and not at version %d, which this change expects; the change was not "+
			"made. Its text is: %s", e.Current.Path, e.Current.Version, e.Version, e.Current.Content)
	}
	return fmt.Sprintf("%s has the SHA-256 %s, and not the one that this change expects; the change was not made. Its "+
		"text is: %s", e.Current.Path, e.Current.SHA256, e.Current.Content)
}

// Unwrap returns ErrConflict.
func (e *MismatchError) Unwrap() error { return db.ErrConflict }

func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}
