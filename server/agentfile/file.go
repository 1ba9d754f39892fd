package agentfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
)

// maxItemBytes bounds each item in the lists of a file, such as an agent with its messages, a block, or a file's text.
const maxItemBytes = 64 << 20

// maxItems bounds the number of items in a list of a file. The size of the file bounds it too.
const maxItems = 100_000_000

// isTaken reports whether an error says that another object has the same id.
func isTaken(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "23505"
}

// corrupted is Letta's message about a file that is no agent file.
const corrupted = "Corrupted agent file format"

// file is an agent file that is being read.
type file struct {
	fields map[string]json.RawMessage
	lists  map[string]*rest.List
	own    lociFields

	unknown  rest.Warnings // about fields at the top of the file
	warnings rest.Warnings // about fields that the API does not know
}

// open reads the parts of a file that are small enough to hold in memory. A file of Letta's older format is upgraded.
func open(spool *rest.Spool) (*file, error) {
	previous := spool.Warnings
	f, err := openNewer(spool, len(previous))
	if !errors.Is(err, errNoAgents) {
		return f, err
	}
	spool.Warnings = previous
	if err := spool.Rewrite(maxItemBytes, upgraded); err != nil {
		return nil, err
	}
	if f, err = openNewer(spool, len(previous)); errors.Is(err, errNoAgents) {
		return nil, db.Invalid(corrupted + ": the file has no list of agents, and is none of Letta's older format")
	}
	return f, err
}

// errNoAgents means that a file has no list of agents.
var errNoAgents = errors.New("the file has no list of agents")

// openNewer opens a file of the newer format. Of the spool's warnings, those behind the first previous are of the file.
func openNewer(spool *rest.Spool, previous int) (*file, error) {
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
	f := &file{fields: fields, lists: lists, unknown: spool.Warnings[previous:]}
	if lists[listAgents] == nil || lists[listAgents].Len == 0 {
		return nil, errNoAgents
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

// items yields the items of a list, each with its place in the file.
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

// at adds the place to an error that the caller of an import can fix. It leaves other errors unchanged.
func at(place string, err error) error {
	_, isProblem := errors.AsType[*rest.Problem](err)
	if err == nil || isProblem || isTaken(err) {
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

// decode decodes a value of the file. ErrInvalid, with the place, if the value has another type.
func decode(place string, raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return db.Invalid("%s: %s", place, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// decodeOwn decodes a value that only Loci writes. ErrInvalid, with the place, if the value has another type or a field
// that this server does not know.
func decodeOwn(place string, raw json.RawMessage, target any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(target); err != nil {
		return db.Invalid("%s: %s", place, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// without removes some fields from an object. It returns the rest of the object and the removed fields.
func without(place string, raw json.RawMessage, names ...string) (json.RawMessage, map[string]json.RawMessage, error) {
	fields, removed := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := decode(place, raw, &fields); err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if value, ok := fields[name]; ok {
			removed[name] = value
			delete(fields, name)
		}
	}
	rest, err := encode(fields)
	return rest, removed, err
}
