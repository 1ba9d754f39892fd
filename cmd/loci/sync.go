package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// syncCmd makes a folder hold what a directory or a list of URLs holds.
type syncCmd struct {
	remote
	asked
	Dir    string `arg:"" help:"The directory; not with --urls."`
	Folder string `arg:"" optional:"" help:"Name or ID of the folder; a new name creates it."`
	Delete bool   `help:"Delete files of the folder that the directory or the list does not have."`
	DryRun bool   `help:"Say what would be done, and do nothing."`
	Watch  bool   `help:"Go on with each change of the directory, until Ctrl-C. With --urls, look again and again."`
	urlsFlags
}

// watchEvery is how often a watched directory is looked at. A change is taken once the next look finds no other.
const watchEvery = 2 * time.Second

func (c syncCmd) Run(ctx context.Context, s streams) error {
	if c.URLs != "" && c.Folder == "" {
		c.Dir, c.Folder = "", c.Dir
	}
	switch {
	case c.URLs != "" && c.Dir != "":
		return settingError{errors.New("a directory and --urls contradict each other: name one of them")}
	case c.Folder == "":
		return settingError{errors.New("name the directory and the folder, or --urls and the folder")}
	}
	if err := sendable(c.Folder); err != nil {
		return settingError{errors.New("the folder's name has control characters, or is not UTF-8")}
	}
	if c.Watch && c.DryRun {
		return settingError{errors.New("--watch and --dry-run contradict each other: name one of them")}
	}
	if c.URLs != "" {
		return c.followURLs(ctx, s)
	}
	y := &syncing{syncCmd: c, streams: s, hashes: map[treeFile]string{}}
	t, err := readTree(c.Dir)
	if err == nil {
		err = y.once(ctx, t)
	}
	for last := t; c.Watch && ctx.Err() == nil; {
		if err != nil {
			fmt.Fprintln(s.err, "loci:", err)
		}
		if last, err = c.nextChange(ctx, last); err == nil {
			err = y.once(ctx, last)
		}
	}
	if c.Watch && ctx.Err() != nil {
		err = nil // Ctrl-C is how watching ends
	}
	return err
}

// nextChange waits until the directory differs from the last look at it, and then stays as it is for one more look.
func (c syncCmd) nextChange(ctx context.Context, last *tree) (*tree, error) {
	previous := last
	for {
		if !db.Pause(ctx, watchEvery) {
			return last, ctx.Err()
		}
		now, err := readTree(c.Dir)
		if err != nil {
			continue // it may be replaced by another one just now
		}
		if last == nil || !slices.Equal(now.files, last.files) && previous != nil && slices.Equal(now.files, previous.files) {
			return now, nil
		}
		previous = now
	}
}

// syncing is one run of the command.
type syncing struct {
	syncCmd
	streams
	folder string
	hashes map[treeFile]string // of files that stay as they are

	done syncDone
}

// syncDone is what one round did.
type syncDone struct {
	FolderID  string      `json:"folder_id"`
	DryRun    bool        `json:"dry_run"`
	Uploaded  []string    `json:"uploaded"`
	Replaced  []string    `json:"replaced"`
	Moved     [][2]string `json:"moved"` // from, to
	Deleted   []string    `json:"deleted"`
	Extra     []string    `json:"extra"`   // that the directory does not have; kept without --delete
	Skipped   []string    `json:"skipped"` // symbolic links that lead out of the directory, or to no regular file
	Unchanged int         `json:"unchanged"`
	Failed    []failure   `json:"failed"`
}

// once makes the folder hold what a directory holds, and prints what it did.
func (y *syncing) once(ctx context.Context, t *tree) error {
	return y.follow(ctx, func(context.Context, []files.File) (*tree, error) { return t, nil })
}

// follow makes the folder hold what a tree has, and prints what it did. read reads the tree; it is told which files the
// folder has.
func (y *syncing) follow(ctx context.Context, read func(context.Context, []files.File) (*tree, error)) error {
	y.done = syncDone{DryRun: y.DryRun, Uploaded: []string{}, Replaced: []string{}, Moved: [][2]string{},
		Deleted: []string{}, Extra: []string{}, Skipped: []string{}, Failed: []failure{}}
	stored, err := y.open(ctx)
	if err != nil {
		return err
	}
	t, err := read(ctx, stored)
	if err != nil {
		return err
	}
	for _, fault := range slices.Concat(t.faults, t.missing) {
		y.fail(fault.Name, errors.New(fault.Error))
	}
	for _, link := range t.skipped {
		y.done.Skipped = append(y.done.Skipped, link)
		if !y.JSON {
			fmt.Fprintf(y.out, "skipped: %s (a link that leads out of the directory, or to no file)\n", printable(link))
		}
	}
	if err := y.mirror(ctx, t, stored); err != nil {
		return err
	}
	if err := y.print(); err != nil {
		return err
	}
	if n := len(y.done.Failed); n > 0 {
		return fmt.Errorf("%d of %d files failed", n, len(t.files)+len(t.faults)+len(t.missing))
	}
	return nil
}

// open finds or creates the folder, and lists its files.
func (y *syncing) open(ctx context.Context) ([]files.File, error) {
	f, err := y.findFolder(ctx, y.Folder)
	if _, unknown := errors.AsType[unknownFolder](err); unknown {
		if y.DryRun {
			return nil, nil
		}
		f, err = y.createFolder(ctx, y.Folder, nil)
	}
	if err != nil {
		return nil, err
	}
	y.folder, y.done.FolderID = f.ID, f.ID
	all, err := listAll[files.File](ctx, y.remote, "/v1/folders/"+f.ID+"/files", url.Values{})
	stored := make([]files.File, len(all))
	for i, item := range all {
		stored[i] = item.shown
	}
	return stored, err
}

// mirror uploads what is new or changed, renames what was moved, and deletes what is gone if it may. It returns an
// error only if ctx has ended, or the server does not answer.
func (y *syncing) mirror(ctx context.Context, t *tree, stored []files.File) error {
	slices.SortStableFunc(stored, func(a, b files.File) int { return a.CreatedAt.Compare(b.CreatedAt) })
	byName := map[string]files.File{} // of several, the one that will replace the others
	for _, f := range stored {
		byName[f.Name] = f
	}
	local := map[string]bool{}
	for _, f := range t.files {
		local[f.name] = true
	}
	gone := map[string][]files.File{} // by hash: files that the directory does not have under their names
	for _, f := range stored {
		if !local[f.Name] && byName[f.Name].ID == f.ID {
			gone[f.SHA256] = append(gone[f.SHA256], f)
		}
	}
	moved := map[string]bool{}
	for _, f := range t.files {
		hash, err := y.hash(ctx, f)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		old, exists := byName[f.name]
		from := gone[hash]
		if was := f.page.storedAs(stored); !exists && len(from) == 0 && was != nil && !local[was.Name] && !moved[was.ID] {
			moved[was.ID] = true
			y.move(ctx, *was, f)
			old, exists = *was, true // it is replaced under its new name
		}
		if i := slices.IndexFunc(from, f.page.is); i >= 0 { // rather than another with this content
			from[0], from[i] = from[i], from[0]
		}
		switch {
		case err != nil:
			y.fail(f.name, withoutPath(err))
		case exists && old.SHA256 == hash && old.Status == files.Failed:
			y.fail(f.name, fmt.Errorf("it is not stored again, because it failed before: %s", textOf(old.ErrorMessage)))
		case exists && old.SHA256 == hash:
			y.keep(ctx, f, old)
		case !exists && len(from) > 0:
			gone[hash], moved[from[0].ID] = from[1:], true
			y.move(ctx, from[0], f)
		default:
			y.upload(ctx, f, old)
		}
	}
	for _, f := range stored {
		if !local[f.Name] && !moved[f.ID] && !t.kept[f.Name] {
			y.remove(ctx, f, len(t.faults) > 0)
		}
	}
	return ctx.Err()
}

// hash returns the hash of a file's content, which it keeps while the file stays as it is.
func (y *syncing) hash(ctx context.Context, f treeFile) (string, error) {
	if f.page != nil {
		return f.page.hash, nil
	}
	if hash, ok := y.hashes[f]; ok {
		return hash, nil
	}
	hash, err := hashOf(ctx, f.path)
	if err == nil {
		y.hashes[f] = hash
	}
	return hash, err
}

// try does something to a file, unless this is a dry run, and says so. It reports whether that succeeded.
func (y *syncing) try(what, name string, do func() error) bool {
	if !y.DryRun {
		if err := do(); err != nil {
			y.fail(name, withoutPath(err))
			return false
		}
	}
	y.say(what, name)
	return true
}

// upload uploads a file, in place of an old one if that has an ID.
func (y *syncing) upload(ctx context.Context, f treeFile, old files.File) {
	what, list := "uploaded", &y.done.Uploaded
	if old.ID != "" {
		what, list = "replaced", &y.done.Replaced
	}
	if y.try(what, f.name, func() error {
		u := &upload{uploadCmd: uploadCmd{remote: y.remote, Duplicates: "replace"}, streams: y.streams, folder: y.folder}
		stored, err := u.send(ctx, f.localFile)
		if err != nil || f.page == nil {
			return err
		}
		return y.update(ctx, stored.ID, fileChange{Metadata: f.page.metadata(old)})
	}) {
		*list = append(*list, f.name)
	}
}

// keep notes a file that has its content already.
func (y *syncing) keep(ctx context.Context, f treeFile, old files.File) {
	if f.page != nil && !y.DryRun && !f.page.isNoted(old) {
		if err := y.update(ctx, old.ID, fileChange{Metadata: f.page.metadata(old)}); err != nil {
			y.fail(f.name, err)
			return
		}
	}
	y.done.Unchanged++
}

func (y *syncing) move(ctx context.Context, from files.File, to treeFile) {
	if y.try("moved", from.Name+" to "+to.name, func() error {
		change := fileChange{Name: to.name}
		if to.page != nil {
			change.Metadata = to.page.metadata(from)
		}
		return y.update(ctx, from.ID, change)
	}) {
		y.done.Moved = append(y.done.Moved, [2]string{from.Name, to.name})
	}
}

// fileChange is a change of a stored file. Empty fields stay.
type fileChange struct {
	Name     string         `json:"name,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

func (y *syncing) update(ctx context.Context, fileID string, change fileChange) error {
	return y.send(ctx, http.MethodPatch, "/v1/folders/"+y.folder+"/files/"+fileID, change, nil)
}

// remove deletes a file that the directory does not have. It keeps the file without --delete, and if a part of the
// directory could not be read.
func (y *syncing) remove(ctx context.Context, f files.File, unsure bool) {
	if !y.Delete || unsure {
		y.done.Extra = append(y.done.Extra, f.Name)
		return
	}
	if y.try("deleted", f.Name, func() error {
		return y.send(ctx, http.MethodDelete, "/v1/folders/"+y.folder+"/"+f.ID, nil, nil)
	}) {
		y.done.Deleted = append(y.done.Deleted, f.Name)
	}
}

func (y *syncing) fail(name string, err error) {
	y.done.Failed = append(y.done.Failed, failure{name, err.Error()})
	fmt.Fprintf(y.err, "%s: %v\n", printable(name), err)
}

func (y *syncing) say(what, name string) {
	if y.JSON {
		return
	}
	if y.DryRun {
		what = "would be " + what
	}
	fmt.Fprintf(y.out, "%s: %s\n", what, printable(name))
}

// print prints the counts.
func (y *syncing) print() error {
	d := y.done
	if y.JSON {
		return printJSON(y.streams, d)
	}
	counts := fmt.Sprintf("%d uploaded, %d replaced, %d moved, %d deleted, %d unchanged, %d failed", len(d.Uploaded),
		len(d.Replaced), len(d.Moved), len(d.Deleted), d.Unchanged, len(d.Failed))
	if n := len(d.Extra); n > 0 {
		counts += fmt.Sprintf(", %d only in the folder (--delete deletes them)", n)
	}
	if n := len(d.Skipped); n > 0 {
		counts += fmt.Sprintf(", %d skipped", n)
	}
	if y.DryRun {
		counts = "nothing was done: " + strings.Replace(counts, " uploaded", " would be uploaded", 1)
	}
	_, err := fmt.Fprintln(y.out, counts)
	return err
}
