package agentfile

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// ImportOptions change what an import creates. Empty fields change nothing.
type ImportOptions struct {
	Name       string // the agent's name; the file must have a single agent
	CopySuffix bool   // adds _copy to the agents' names
	NoMessages bool
	KeepTools  bool    // keeps the organization's tools where the file has tools of the same names
	Model      *string // for all agents
	Embedding  *string
}

// Imported is the answer to an import.
type Imported struct {
	AgentIDs []string `json:"agent_ids" doc:"Of the agents that were created, in the order of the file."`
	LeftOut  []string `json:"left_out" doc:"What of the file was not imported and why, a sentence each."`
}

// ids decides which ids the objects of a full file get: the ids in the file or, if one of them is taken, new ids for
// all.
type ids struct {
	mapped bool
	space  uuid.UUID // determines the new ids
}

// of returns the id for an object of the file. ErrInvalid unless id is the prefix and a random UUID.
func (i ids) of(prefix, id string) (string, error) {
	if parsed := db.UUID(prefix, id); id != prefix+parsed.String() || parsed.Version() != 4 {
		return "", db.Invalid("the id is %q; it must be %s and a random UUID in lower case", db.Short(id), prefix)
	}
	return i.any(id), nil
}

// any returns the new id for an id of any kind. It returns words that are no ids unchanged.
func (i ids) any(id string) string {
	dash := strings.IndexByte(id, '-') + 1
	old, err := uuid.Parse(id[dash:])
	if !i.mapped || dash == 0 || err != nil {
		return id
	}
	return id[:dash] + uuid.NewHash(sha256.New(), i.space, old[:], 4).String()
}

// imports is a running import, in a transaction.
type imports struct {
	*Store
	ImportOptions
	tx   pgx.Tx
	org  db.Org
	file *file
	ids  ids

	tools   map[string]string // built-in tools' names by their ids in the file; empty for tools that Loci lacks
	custom  map[string]string // ids of custom tools, by ids in the file
	blocks  map[string]string // ids of blocks, by ids in the file
	folders map[string]string
	files   map[string]storedFile
	made    Imported

	agentIDs  map[string]string // ids of a full file's agents, by ids in the file
	ownBlocks map[string]bool   // ids of restored blocks

	conversations map[string]bool   // ids of restored conversations
	keptIDs       *strings.Replacer // replaces the ids of kept results in texts
}

// storedFile is a file of the import, and its folder.
type storedFile struct{ id, folder string }

// leaveOut notes a part of the file that is not imported, as a sentence.
func (i *imports) leaveOut(format string, args ...any) {
	i.made.LeftOut = append(i.made.LeftOut, fmt.Sprintf(format, args...))
}

// noteUnserved notes the parts of the file for which Loci has nothing.
func (i *imports) noteUnserved(context.Context) error {
	for _, part := range []struct{ name, why string }{
		{listGroups, "Loci runs no groups of agents."},
		{listServers, "Loci calls no MCP servers."},
		{listSkills, "Loci keeps no skills."},
	} {
		var all []any
		if raw := i.file.fields[part.name]; raw != nil {
			if err := decode(part.name, raw, &all); err != nil {
				return err
			}
		}
		if len(all) > 0 {
			i.leaveOut("%s: %d left out. %s", part.name, len(all), part.why)
		}
	}
	return nil
}

// remember stores what an object of the file became, by the object's id in the file. ErrInvalid if the object has no
// id, or the id of another object.
func remember[T any](objects map[string]T, place string, raw json.RawMessage, value T) error {
	var id string
	if len(raw) > 0 {
		if err := decode(place+".id", raw, &id); err != nil {
			return err
		}
	}
	if _, duplicate := objects[id]; duplicate || id == "" {
		return db.Invalid("%s.id: %q is missing, or is the id of two objects of the file", place, db.Short(id))
	}
	objects[id] = value
	return nil
}
