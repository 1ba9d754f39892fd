package lettadb

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// folder is a source row in Letta's database.
type folder struct {
	row
	Name         string
	Description  *string
	Instructions *string
	Metadata     json.RawMessage `json:"metadata_"`
}

// folders imports the organization's folders, with their files.
func (r *run) folders(ctx context.Context) error {
	all, err := list[folder](ctx, r, "sources", `SELECT * FROM sources WHERE organization_id = $1 ORDER BY id`, r.source)
	if err != nil {
		return err
	}
	for _, f := range all {
		_, err := r.Agents.Files.Folder(ctx, r.org, f.ID)
		missing, err := absent(err)
		switch {
		case err != nil:
			return err
		case !missing:
			r.report.stored("sources", false)
		default:
			if err := r.item(ctx, "sources", f.ID, func(txRun *run) error { return txRun.folder(ctx, f) }); err != nil {
				return err
			}
		}
		if err := r.files(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) folder(ctx context.Context, f folder) error {
	proposed := clipped(plainName(f.Name, "folder"), 240)
	name, err := r.Agents.Files.RestoreFolder(ctx, r.org, files.PortableFolder{ID: f.ID, Name: proposed,
		Description: cleanText(f.Description), Instructions: cleanText(f.Instructions), Metadata: object(f.Metadata),
		OverlapTokens: files.DefaultOverlapTokens, CreatedAt: f.created(), UpdatedAt: f.updated()})
	if err == nil && name != f.Name {
		r.report.note("folder %s: its name %q became %q.", f.ID, db.Short(f.Name), name)
	}
	return err
}

func cleanText(text *string) *string {
	if text == nil {
		return nil
	}
	return new(db.Clean(*text))
}

// file is a file in Letta's database. Letta keeps no originals, so only the text is imported.
type file struct {
	row
	Name     *string `json:"file_name"`
	Original *string `json:"original_file_name"`
	Status   string  `json:"processing_status"`
	Error    *string `json:"error_message"`
}

func (r *run) files(ctx context.Context, parent folder) error {
	all, err := list[file](ctx, r, "files", `SELECT * FROM files WHERE source_id = $1 ORDER BY created_at, id`, parent.ID)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, f := range all {
		name := freeName(f.storedName(), names)
		_, err := r.Agents.Files.File(ctx, r.org, parent.ID, f.ID, false)
		if missing, err := absent(err); err != nil {
			return err
		} else if !missing {
			r.report.stored("files", false)
			continue
		}
		text, err := r.textOf(ctx, f)
		if err != nil {
			return err
		}
		if text == nil {
			r.report.leftOut("files", "file %s (%s): left out. Letta has neither its text nor passages of it; its state is %s: "+
				"%s", f.ID, db.Short(name), f.Status, orNone(f.Error))
			continue
		}
		err = r.item(ctx, "files", f.ID, func(run *run) error { return run.file(ctx, parent.ID, name, f, *text) })
		if err != nil {
			return err
		}
	}
	return r.loosePassages(ctx, parent, names)
}

// loosePassages turns passages of a folder that belong to no file into files: one file for each file name.
func (r *run) loosePassages(ctx context.Context, parent folder, names map[string]bool) error {
	if !r.from.has("source_passages") {
		return nil
	}
	type loose struct {
		Name string `db:"name"`
		Text string `db:"text"`
	}
	all, err := db.All[loose](ctx, r.from.tx, `
		SELECT file_name AS name, string_agg(text, E'\n\n' ORDER BY created_at, id) AS text FROM source_passages
		WHERE source_id = $1 AND file_id IS NULL AND NOT is_deleted
		GROUP BY file_name ORDER BY file_name`, parent.ID)
	if err != nil {
		return err
	}
	for _, l := range all {
		f := file{row: row{ID: filePrefix + derived(parent.ID, l.Name), CreatedAt: parent.CreatedAt}, Name: &l.Name}
		name := freeName(f.storedName(), names)
		_, err := r.Agents.Files.File(ctx, r.org, parent.ID, f.ID, false)
		missing, err := absent(err)
		if err != nil {
			return err
		}
		if missing {
			err = db.Tx(ctx, r.Agents.DB, func(tx pgx.Tx) error {
				return r.with(tx).file(ctx, parent.ID, name, f, *valid(&l.Text))
			})
		}
		switch {
		case errors.Is(err, db.ErrInvalid):
			r.report.note("folder %s: the passages of %q, which belong to no file, are left out. %v", parent.ID,
				db.Short(l.Name), err)
		case err != nil:
			return err
		default:
			r.report.note("folder %s: the passages of %q, which belong to no file, are the file %s.", parent.ID,
				db.Short(l.Name), f.ID)
		}
	}
	return nil
}

const filePrefix = "file-"

func orNone(text *string) string {
	if text == nil || *text == "" {
		return "no reason is stored"
	}
	return db.Short(*text)
}

// file stores the text of a file under its name. If the name means another format, .txt is appended.
func (r *run) file(ctx context.Context, folderID, name string, f file, text string) error {
	stored := files.PortableFile{ID: f.ID, FolderID: folderID, Name: name, OriginalName: name, MediaType: "text/plain",
		SizeBytes: int64(len(text)), CreatedAt: f.created()}
	err := r.Agents.Files.RestoreFile(ctx, r.org, stored, strings.NewReader(text))
	if _, unsupported := errors.AsType[*files.UnsupportedError](err); unsupported && !strings.HasSuffix(name, ".txt") {
		stored.Name += ".txt"
		err = r.Agents.Files.RestoreFile(ctx, r.org, stored, strings.NewReader(text))
	}
	if large, ok := errors.AsType[*files.TooLargeError](err); ok {
		return db.Invalid("%v", large)
	}
	return err
}

// textOf returns the text of a file: the stored text or, if a stopped server stored none, the file's passages joined.
// It returns nil if there are neither.
func (r *run) textOf(ctx context.Context, f file) (text *string, err error) {
	if r.from.has("file_contents") {
		text, err = db.One[*string](ctx, r.from.tx, `
			SELECT (SELECT text FROM file_contents WHERE file_id = $1 AND NOT is_deleted ORDER BY id LIMIT 1)`, f.ID)
	}
	if err != nil || text != nil || !r.from.has("source_passages") {
		return valid(text), err
	}
	text, err = db.One[*string](ctx, r.from.tx, `
		SELECT string_agg(text, E'\n\n' ORDER BY created_at, id) FROM source_passages
		WHERE file_id = $1 AND NOT is_deleted`, f.ID)
	if text != nil {
		r.report.note("file %s: Letta has no text of it; its passages, joined, are its text.", f.ID)
	}
	return valid(text), err
}

// valid returns a text as valid UTF-8. A database with the encoding SQL_ASCII may hold any bytes.
func valid(text *string) *string {
	if text == nil || utf8.ValidString(*text) {
		return text
	}
	return new(strings.ToValidUTF8(*text, "\uFFFD"))
}

// notText are file name extensions of formats that Letta stored as text.
var notText = []string{".pdf", ".docx", ".pptx", ".xlsx", ".xls", ".doc", ".ppt", ".epub",
	".odt", ".ods", ".odp", ".rtf"}

// storedName returns the name for a file in its folder: Letta's name without the folder's name before it, or the
// original name.
func (f file) storedName() string {
	name, original := "", ""
	if f.Name != nil {
		name = *f.Name
	}
	if f.Original != nil {
		original = *f.Original
	}
	if _, inFolder, hasFolder := strings.Cut(name, "/"); hasFolder && inFolder != "" && name != original {
		name = inFolder
	}
	if name == "" {
		name = original
	}
	if clean, err := files.CleanPath(name); err == nil {
		name = clean
	} else {
		name = clipped(plainName(strings.Trim(name, "./\\ "), "file.txt"), 200)
	}
	if slices.Contains(notText, strings.ToLower(path.Ext(name))) {
		name += ".txt"
	}
	return name
}

// freeName returns a name that no other file of the folder has, and marks it as taken.
func freeName(name string, taken map[string]bool) string {
	free := name
	for n := 1; taken[free]; n++ {
		free = files.Suffixed(name, n)
	}
	taken[free] = true
	return free
}
