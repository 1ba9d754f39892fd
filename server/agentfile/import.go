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

// ImportOptions change what an import makes of a file. Empty fields change nothing.
type ImportOptions struct {
	Name       string // of the agent, which must be the file's only one
	CopySuffix bool   // adds _copy to the names
	NoMessages bool
	KeepTools  bool    // leaves definitions of the organization that have the names of the file's as they are
	Model      *string // of all agents
	Embedding  *string
}

// Imported is the answer to an import.
type Imported struct {
	AgentIDs []string `json:"agent_ids" doc:"Of the agents that were created, in the order of the file."`
	LeftOut  []string `json:"left_out" doc:"What of the file was not imported and why, a sentence each."`
}

// ids are the ids that objects of a full file get: those of the file, or if one of these is taken, new ones for all.
type ids struct {
	mapped bool
	space  uuid.UUID // decides the new ones
}

// of returns the id that an object of the file gets. It must have the prefix and a UUID.
func (i ids) of(prefix, id string) (string, error) {
	if parsed := db.UUID(prefix, id); id != prefix+parsed.String() || parsed.Version() != 4 {
		return "", db.Invalid("the id is %q; it must be %s and a random UUID in lower case", db.Short(id), prefix)
	}
	return i.any(id), nil
}

// any returns what an id of any kind becomes. A word that is no id stays.
func (i ids) any(id string) string {
	dash := strings.IndexByte(id, '-') + 1
	old, err := uuid.Parse(id[dash:])
	if !i.mapped || dash == 0 || err != nil {
		return id
	}
	return id[:dash] + uuid.NewHash(sha256.New(), i.space, old[:], 4).String()
}

// imports is an import under way, in a transaction.
type imports struct {
	*Store
	ImportOptions
	tx   pgx.Tx
	org  db.Org
	file *file
	ids  ids

	tools   map[string]string // names of built-in tools by their ids in the file; empty for those that Loci lacks
	custom  map[string]string // ids of custom tools by those of the file
	blocks  map[string]string // ids by those of the file
	folders map[string]string
	files   map[string]storedFile
	made    Imported

	agentIDs  map[string]string // of a full file, by those that it has
	ownBlocks map[string]bool   // ids of restored blocks

	conversations map[string]bool   // ids of restored conversations
	keptIDs       *strings.Replacer // of those of kept results in texts
}

// storedFile is a file of the import, and its folder.
type storedFile struct{ id, folder string }

// leaveOut notes what of the file is not imported.
func (i *imports) leaveOut(format string, args ...any) {
	i.made.LeftOut = append(i.made.LeftOut, fmt.Sprintf(format, args...))
}

// noteUnserved notes the parts of the file that Loci does not have.
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

// remember remembers what an object of the file has become, by its id there. ErrInvalid if it has none, or that of
// another object.
func remember[T any](known map[string]T, place string, raw json.RawMessage, now T) error {
	var id string
	if len(raw) > 0 {
		if err := decode(place+".id", raw, &id); err != nil {
			return err
		}
	}
	if _, twice := known[id]; twice || id == "" {
		return db.Invalid("%s.id: %q is missing, or is the id of two objects of the file", place, db.Short(id))
	}
	known[id] = now
	return nil
}
