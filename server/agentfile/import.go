package agentfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
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

// maxItemBytes bounds an agent of a file with its messages, a block, a text of a file, or another item of its lists.
const maxItemBytes = 64 << 20

// maxItems bounds the items of a list of a file. The size of a file bounds them further.
const maxItems = 100_000_000

// Import creates the agents of a file, all or nothing. ErrInvalid or a *rest.Problem, which names the place in the
// file, if it is not a file of agents, or breaks a rule.
func (s *Store) Import(ctx context.Context, org db.Org, file *rest.Spool, o ImportOptions) (Imported, error) {
	f, err := open(file)
	if err != nil {
		return Imported{}, err
	}
	s.Agents.DefaultModel(ctx) // asks the endpoint, if nobody did, before the transaction
	var made Imported
	for _, mapped := range []bool{false, true} {
		err = db.Tx(ctx, s.Agents.DB, func(tx pgx.Tx) error {
			i := &imports{Store: s.with(tx), tx: tx, org: org, ImportOptions: o, file: f,
				ids: ids{mapped: mapped, space: uuid.New()}}
			made, err = i.run(ctx)
			return err
		})
		if !f.own.Full || !isTaken(err) {
			break
		}
	}
	if isTaken(err) {
		err = db.Invalid("the file has two objects with one id, or name, where there can be one (%s)", db.Constraint(err))
	}
	return made, err
}

// isTaken reports whether an object has an id that another one has.
func isTaken(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "23505"
}

// corrupted is what Letta says of a file that is no agent file.
const corrupted = "Corrupted agent file format"

// file is an agent file that is being read.
type file struct {
	fields map[string]json.RawMessage
	lists  map[string]*rest.List
	own    own

	unknown  rest.Warnings // of fields of the file itself
	warnings rest.Warnings // of fields that the API does not know
}

func open(spool *rest.Spool) (*file, error) {
	before := len(spool.Warnings)
	fields, lists, err := spool.Fields(rest.Lists{
		Names:    append([]string{listAgents, listBlocks, listFiles, listSources, listTools}, fullLists...),
		Others:   []string{listGroups, listServers, listSkills, fieldLoci, "metadata", "created_at"},
		MaxItems: maxItems, MaxItemBytes: maxItemBytes, Large: true, Rule: "expected an object",
	})
	if problem, ok := errors.AsType[*rest.Problem](err); ok &&
		(problem.GetStatus() == 400 || strings.HasPrefix(problem.Error(), "body: ")) {
		return nil, db.Invalid(corrupted+". %s", problem.Detail)
	}
	if err != nil {
		return nil, err
	}
	f := &file{fields: fields, lists: lists, unknown: spool.Warnings[before:]}
	if lists[listAgents] == nil || lists[listAgents].Len == 0 {
		return nil, db.Invalid(corrupted + ": the file has no list of agents. The older format of a " +
			"single agent is not read; export the agent again with a newer server")
	}
	if raw := fields[fieldLoci]; raw != nil {
		if err := decodeOwn(fieldLoci, raw, &f.own); err != nil {
			return nil, err
		}
		if f.own.Version != formatVersion {
			return nil, db.Invalid("loci.version is %d; this server reads version %d", f.own.Version, formatVersion)
		}
	}
	return f, nil
}

// items yields the items of a list, with their places in the file.
func (f *file) items(name string) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		if f.lists[name] == nil {
			return
		}
		n := 0
		for raw, err := range f.lists[name].Items() {
			it := item{place: fmt.Sprintf("%s[%d]", name, n), raw: raw}
			if !yield(it, err) || err != nil {
				return
			}
			n++
		}
	}
}

// item is an item of a list, with its place in the file.
type item struct {
	place string
	raw   json.RawMessage
}

// at names the place of an error that the caller of an import can act on.
func at(place string, err error) error {
	_, own := errors.AsType[*rest.Problem](err)
	if err == nil || own || isTaken(err) {
		return err
	}
	if _, pg := errors.AsType[*pgconn.PgError](err); pg && errors.Is(err, db.ErrInvalid) {
		return db.Invalid("%s: a value cannot be stored (%s)", place, db.Constraint(err))
	}
	for _, kind := range []error{db.ErrInvalid, db.ErrConflict, db.ErrNotFound} {
		if errors.Is(err, kind) {
			return db.Invalid("%s: %v", place, err)
		}
	}
	return err
}

// decode reads a value of the file. ErrInvalid, with its place, if it has another type.
func decode(place string, raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return db.Invalid("%s: %s", place, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// decodeOwn is decode of a value that only Loci writes. ErrInvalid also if it has a field that this server does not
// know.
func decodeOwn(place string, raw json.RawMessage, into any) error {
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return db.Invalid("%s: %s", place, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
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

func (i *imports) run(ctx context.Context) (Imported, error) {
	i.made, i.file.warnings = Imported{AgentIDs: []string{}, LeftOut: []string{}}, nil
	i.blocks, i.folders, i.files = map[string]string{}, map[string]string{}, map[string]storedFile{}
	steps := []func(context.Context) error{i.checkOptions, i.noteUnserved, i.readTools}
	if i.file.own.Full {
		steps = append(steps, i.restore)
	} else {
		steps = append(steps, i.createBlocks, i.createFolders, i.createFiles, i.createAgents)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return Imported{}, err
		}
	}
	i.made.LeftOut = append(append(i.made.LeftOut, i.file.unknown...), i.file.warnings...)
	return i.made, nil
}

func (i *imports) checkOptions(context.Context) error {
	if n := i.file.lists[listAgents].Len; i.Name != "" && n > 1 {
		return db.Invalid("name: the file has %d agents; leave the name out, and rename them afterwards", n)
	}
	if i.NoMessages && i.file.own.Full {
		return db.Invalid("strip_messages: a full file is imported whole; export the agent without full=true")
	}
	return nil
}

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

// without returns an object without some of its fields.
func without(place string, raw json.RawMessage, names ...string) (json.RawMessage, map[string]json.RawMessage, error) {
	fields, taken := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := decode(place, raw, &fields); err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if value, ok := fields[name]; ok {
			taken[name] = value
			delete(fields, name)
		}
	}
	rest, err := encode(fields)
	return rest, taken, err
}
