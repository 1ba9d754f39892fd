package console

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

func fileRoutes() map[string]handler {
	return map[string]handler{
		"GET files":                                 fileHome,
		"POST files":                                createFolder,
		"GET folders/{folder}":                      folderPage,
		"POST folders/{folder}/upload":              uploadFile,
		"POST folders/{folder}/send":                sendFiles,
		"POST folders/{folder}/delete":              deleteFolder,
		"GET folders/{folder}/files/{file}":         filePage,
		"GET folders/{folder}/files/{file}/events":  followFile,
		"POST folders/{folder}/files/{file}/{verb}": changeFile,
	}
}

// folder is a folder in the API's form.
type folder struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	CreatedAt   time.Time `json:"created_at"`
}

// URL is the address of the folder's page.
func (f folder) URL() string { return base + "folders/" + f.ID }

// file is a file in the API's form.
type file struct {
	ID        string     `json:"id"`
	FolderID  string     `json:"source_id"`
	Name      string     `json:"file_name"`
	Type      string     `json:"file_type"`
	Bytes     int64      `json:"file_size"`
	Status    string     `json:"processing_status"`
	Error     string     `json:"error_message"`
	Chunks    int        `json:"total_chunks"`
	Embedded  int        `json:"chunks_embedded"`
	Lines     int        `json:"total_lines"`
	Pages     *int       `json:"total_pages"`
	Omitted   []omission `json:"omitted"`
	ReadBy    []readBy   `json:"read_by"`
	PagesRead *int       `json:"pages_read"`
	Encoding  string     `json:"encoding"`
	Sure      float64    `json:"encoding_confidence"`
	Content   string     `json:"content"`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
}

// omission is what a document holds and its text does not.
type omission struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	Where string `json:"where"`

	Remedy string `json:"remedy"`
}

// readBy is what a program of the operator read of a document.
type readBy struct {
	Kind    string `json:"kind"`
	Program string `json:"program"`
	Where   string `json:"where"`
}

// EncodingText names the file's encoding, and says how sure it is if it is a guess.
func (f file) EncodingText() string {
	if f.Sure >= 0.995 {
		return f.Encoding
	}
	return fmt.Sprintf("%s, %.0f %% sure", f.Encoding, 100*f.Sure)
}

// URL is the address of the file's page.
func (f file) URL() string { return base + "folders/" + f.FolderID + "/files/" + f.ID }

// Pill is the CSS class for the file's status.
func (f file) Pill() string {
	switch f.Status {
	case "completed":
		return "good"
	case "error":
		return "bad"
	}
	return "warn"
}

// Working reports whether the file is still being processed.
func (f file) Working() bool { return f.Status != "completed" && f.Status != "error" }

// Progress says how far the work on the file has come; "" if that is not known.
func (f file) Progress() string {
	switch {
	case f.Status == "parsing" && f.PagesRead != nil && f.Pages != nil:
		return number(*f.PagesRead) + " of " + number(*f.Pages) + " pages"
	case f.Status == "embedding" && f.Chunks > 0:
		return number(f.Embedded) + " of " + number(f.Chunks) + " chunks"
	}
	return ""
}

// Extent says how many lines and pages the file has.
func (f file) Extent() string {
	if f.Pages == nil {
		return number(f.Lines)
	}
	return number(f.Lines) + " on " + number(*f.Pages) + " pages"
}

// statuses are the stages of files.
var statuses = []string{"pending", "parsing", "embedding", "completed", "error"}

// fileList is a page of files.
type fileList struct {
	list[file]
	Status   string
	Statuses []string
}

// files lists files from an API path. The query may select a stage.
func (v *visit) files(path string) (fileList, error) {
	status, err := v.oneOf("status", statuses...)
	if err != nil {
		return fileList{}, err
	}
	out := fileList{Statuses: statuses, Status: status}
	query := url.Values{"order": {"desc"}}
	if status != "" {
		query.Set("status", status)
	}
	out.list, err = paged(v, path, query, func(f file) string { return f.ID })
	return out, err
}

// folderTotal says how much a folder holds.
type folderTotal struct {
	ID    string `json:"source_id"`
	Name  string `json:"source_name"`
	Files int    `json:"file_count"`
	Bytes int64  `json:"total_size"`
}

func fileHome(v *visit) error {
	return v.show(page{Title: "Files", Tab: "Files", Sub: "Documents in folders, which agents share.", Cards: []card{
		{Name: "files-folders", Title: "Folders", Width: "w12", Load: loaded(filesFoldersCard,
			func(v *visit) ([]folderTotal, error) {
				var all struct {
					Folders []folderTotal `json:"sources"`
				}
				err := v.get("/v1/folders/metadata", &all)
				return all.Folders, err
			})},
		{Name: "files-list", Title: "All files", Width: "w12", Live: "10s", Load: loaded(filesListCard,
			func(v *visit) (fileList, error) { return v.files("/v1/files") })},
	}})
}

func createFolder(v *visit) error {
	var f folder
	if err := v.send(http.MethodPost, "/v1/folders", map[string]any{"name": v.r.PostFormValue("name")}, &f); err != nil {
		return err
	}
	return v.done(f.URL(), "created")
}

func deleteFolder(v *visit) error {
	if err := v.send(http.MethodDelete, "/v1/folders/"+v.id("folder"), nil, nil); err != nil {
		return err
	}
	return v.done(base+"files", "deleted")
}

func (v *visit) folder() (f folder, err error) { return f, v.get("/v1/folders/"+v.id("folder"), &f) }

func folderPage(v *visit) error {
	f, err := v.folder()
	if err != nil {
		return err
	}
	p := page{Title: f.Name, Tab: "Files", Crumbs: []link{{"Files", base + "files"}}, Sub: f.Description}
	if v.MayWrite() {
		p.Cards = append(p.Cards, card{Name: "folder-upload", Title: "Upload", Width: "w12",
			Load: known(folderUploadCard, f)})
	}
	p.Cards = append(p.Cards,
		card{Name: "folder-files", Title: "Files", Width: "w8", Live: "5s", Load: loaded(folderFilesCard,
			func(v *visit) (fileList, error) { return v.files("/v1/folders/" + v.id("folder") + "/files") })},
		card{Name: "folder-agents", Title: "Agents that have it", Width: "w4", Load: loaded(folderAgentsCard,
			func(v *visit) (folderSharing, error) {
				agents, err := v.folderAgents()
				return folderSharing{f, agents}, err
			})})
	return v.show(p)
}

// folderSharing is a folder with the agents that have it.
type folderSharing struct {
	Folder folder
	Agents []agent
}

// folderAgents lists the agents that have a folder.
func (v *visit) folderAgents() (agents []agent, err error) {
	var ids []string
	if err := v.get("/v1/folders/"+v.id("folder")+"/agents?limit=20", &ids); err != nil {
		return nil, err
	}
	for _, id := range ids {
		var a agent
		if err := v.get("/v1/agents/"+url.PathEscape(id), &a); err != nil {
			if statusOf(err) == http.StatusNotFound { // deleted in the meantime
				continue
			}
			return nil, err
		}
		agents = append(agents, a)
	}
	return agents, nil
}

// uploadFile streams an upload to the API.
func uploadFile(v *visit) error {
	query := ""
	if name := v.r.URL.Query().Get("name"); name != "" {
		query = "?" + url.Values{"name": {name}}.Encode()
	}
	r := v.request(http.MethodPost, "/v1/folders/"+v.id("folder")+"/upload"+query, v.r.Body)
	r.Header.Set("Content-Type", v.r.Header.Get("Content-Type"))
	r.ContentLength = v.r.ContentLength
	v.console.api.ServeHTTP(v.w, r)
	return nil
}

// followFile passes on the API's stream about a file's progress.
func followFile(v *visit) error {
	path := "/v1/folders/" + v.id("folder") + "/files/" + v.id("file") + "/events"
	v.console.api.ServeHTTP(v.w, v.request(http.MethodGet, path, http.NoBody))
	return nil
}

// changeFile retries, reparses, cancels or deletes a file.
func changeFile(v *visit) error {
	folderPath := "/v1/folders/" + v.id("folder") + "/"
	switch verb := v.r.PathValue("verb"); verb {
	case "retry", "reparse", "cancel":
		if err := v.send(http.MethodPost, folderPath+"files/"+v.id("file")+"/"+verb, nil, nil); err != nil {
			return err
		}
		note := "retried"
		if verb == "cancel" {
			note = "cancelled"
		}
		return v.done(base+"folders/"+v.id("folder")+"/files/"+v.id("file"), note)
	case "delete":
		if err := v.send(http.MethodDelete, folderPath+v.id("file"), nil, nil); err != nil {
			return err
		}
		return v.done(base+"folders/"+v.id("folder"), "deleted")
	}
	_, _ = io.Copy(io.Discard, v.r.Body)
	return errNoPage
}

// chunk is a part of a file that searches find.
type chunk struct {
	ID     string `json:"id"`
	FileID string `json:"file_id"`
	Text   string `json:"text"`
	Place  struct {
		FirstLine int    `json:"first_line"`
		LastLine  int    `json:"last_line"`
		FirstPage *int   `json:"first_page"`
		Heading   string `json:"heading"`
	} `json:"metadata"`
}

// textLine is a line of a file with its number.
type textLine struct {
	Number int
	Text   string
}

// shownLines is how many lines of a file a page shows.
const shownLines = 1000

// fileText is a part of a file's text.
type fileText struct {
	file
	Shown    []textLine
	From, To int
	Before   int // first line of the part before; 0 if there is none
	After    int // first line of the part after; 0 if there is none
}

// text returns the lines that a page shows, beginning at a line.
func (f file) text(first int) fileText {
	lines := strings.Split(strings.TrimSuffix(f.Content, "\n"), "\n")
	first = min(max(1, first), len(lines))
	last := min(first+shownLines-1, len(lines))
	out := fileText{file: f, From: first, To: last}
	for i := first; i <= last && f.Content != ""; i++ {
		out.Shown = append(out.Shown, textLine{i, lines[i-1]})
	}
	if first > 1 {
		out.Before = max(1, first-shownLines)
	}
	if last < len(lines) {
		out.After = last + 1
	}
	return out
}

func filePage(v *visit) error {
	path := "/v1/folders/" + v.id("folder") + "/files/" + v.id("file")
	var f file
	if err := v.get(path, &f); err != nil {
		return err
	}
	owner, err := v.folder()
	if err != nil {
		return err
	}
	live := ""
	if f.Working() {
		live = "2s"
	}
	return v.show(page{Title: f.Name, Tab: "Files", Crumbs: []link{{"Files", base + "files"}, {owner.Name, owner.URL()}},
		Sub: size(f.Bytes), Cards: []card{
			{Name: "file-about", Title: "State", Width: "w7", Live: live, Load: loaded(fileAboutCard,
				func(v *visit) (current file, err error) { return current, v.get(path, &current) })},
			{Name: "file-open", Title: "Open in", Width: "w5", Load: loaded(fileOpenCard,
				func(v *visit) ([]agent, error) { return v.openedBy(f) })},
			{Name: "file-text", Title: "Text", Width: "w7", Load: loaded(fileTextCard, func(v *visit) (fileText, error) {
				first, err := v.whole("line")
				if err != nil {
					return fileText{}, err
				}
				withText := f
				err = v.get(path+"?include_content=true", &withText)
				return withText.text(int(first)), err
			})},
			{Name: "file-chunks", Title: "Chunks", Width: "w5", Load: loaded(fileChunksCard,
				func(v *visit) (chunkList, error) { return v.chunks(f) })},
		}})
}

// openedBy lists the agents with the folder that have the file open.
func (v *visit) openedBy(f file) (list []agent, err error) {
	agents, err := v.folderAgents()
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		var open struct{ Files []openedFile }
		if err := v.get("/v1/agents/"+a.ID+"/files?is_open=true&limit=100", &open); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(open.Files, func(o openedFile) bool { return o.ID == f.ID }) {
			list = append(list, a)
		}
	}
	return list, nil
}
