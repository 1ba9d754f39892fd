package console

import (
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

// folder is a folder as the API has it.
type folder struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	CreatedAt   time.Time `json:"created_at"`
}

// URL is the page of the folder.
func (f folder) URL() string { return base + "folders/" + f.ID }

// file is a file as the API has it.
type file struct {
	ID        string    `json:"id"`
	FolderID  string    `json:"source_id"`
	Name      string    `json:"file_name"`
	Type      string    `json:"file_type"`
	Bytes     int64     `json:"file_size"`
	Status    string    `json:"processing_status"`
	Error     string    `json:"error_message"`
	Chunks    int       `json:"total_chunks"`
	Embedded  int       `json:"chunks_embedded"`
	Lines     int       `json:"total_lines"`
	Pages     *int      `json:"total_pages"`
	Content   string    `json:"content"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// URL is the page of the file.
func (f file) URL() string { return base + "folders/" + f.FolderID + "/files/" + f.ID }

// Pill is the class of the file's status.
func (f file) Pill() string {
	switch f.Status {
	case "completed":
		return "good"
	case "error":
		return "bad"
	}
	return "warn"
}

// Working reports whether the file is being worked on.
func (f file) Working() bool { return f.Status != "completed" && f.Status != "error" }

// statuses are the stages of files.
var statuses = []string{"pending", "parsing", "embedding", "completed", "error"}

// fileList is a page of files.
type fileList struct {
	list[file]
	Folder   folder
	Status   string
	Statuses []string
}

// files lists files, of a folder or of all, at the stage that the query names.
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

// folderTotal is what a folder holds.
type folderTotal struct {
	ID    string `json:"source_id"`
	Name  string `json:"source_name"`
	Files int    `json:"file_count"`
	Bytes int64  `json:"total_size"`
}

func fileHome(v *visit) error {
	return v.show(page{Title: "Files", Tab: "Files", Sub: "Documents in folders, which agents share.", Cards: []card{
		{Name: "files-folders", Title: "Folders", Width: "w12", Load: func(v *visit) (any, error) {
			var all struct {
				Folders []folderTotal `json:"sources"`
			}
			err := v.get("/v1/folders/metadata", &all)
			return all.Folders, err
		}},
		{Name: "files-list", Title: "All files", Width: "w12", Live: "10s", Load: func(v *visit) (any, error) {
			return v.files("/v1/files")
		}},
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
			Load: func(*visit) (any, error) { return f, nil }})
	}
	p.Cards = append(p.Cards,
		card{Name: "folder-files", Title: "Files", Width: "w8", Live: "5s", Load: func(v *visit) (any, error) {
			out, err := v.files("/v1/folders/" + v.id("folder") + "/files")
			out.Folder = f
			return out, err
		}},
		card{Name: "folder-agents", Title: "Agents that have it", Width: "w4", Load: func(v *visit) (any, error) {
			agents, err := v.folderAgents()
			return map[string]any{"Agents": agents, "Folder": f}, err
		}})
	return v.show(p)
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
			if statusOf(err) == http.StatusNotFound { // deleted since
				continue
			}
			return nil, err
		}
		agents = append(agents, a)
	}
	return agents, nil
}

// uploadFile hands an upload to the API as it comes.
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

// followFile hands on the API's stream about the work on a file.
func followFile(v *visit) error {
	path := "/v1/folders/" + v.id("folder") + "/files/" + v.id("file") + "/events"
	v.console.api.ServeHTTP(v.w, v.request(http.MethodGet, path, http.NoBody))
	return nil
}

// changeFile tries a file again, stops the work on it, or deletes it.
func changeFile(v *visit) error {
	here := "/v1/folders/" + v.id("folder") + "/"
	switch verb := v.r.PathValue("verb"); verb {
	case "retry", "reparse", "cancel":
		if err := v.send(http.MethodPost, here+"files/"+v.id("file")+"/"+verb, nil, nil); err != nil {
			return err
		}
		note := "retried"
		if verb == "cancel" {
			note = "cancelled"
		}
		return v.done(base+"folders/"+v.id("folder")+"/files/"+v.id("file"), note)
	case "delete":
		if err := v.send(http.MethodDelete, here+v.id("file"), nil, nil); err != nil {
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
	Before   int // the line at which the part before begins; 0 for none
	After    int // the line at which the part after begins; 0 for none
}

// text cuts the lines that a page shows, from a line on.
func (f file) text(from int) fileText {
	lines := strings.Split(strings.TrimSuffix(f.Content, "\n"), "\n")
	from = min(max(1, from), len(lines))
	to := min(from+shownLines-1, len(lines))
	out := fileText{file: f, From: from, To: to}
	for i := from; i <= to && f.Content != ""; i++ {
		out.Shown = append(out.Shown, textLine{i, lines[i-1]})
	}
	if from > 1 {
		out.Before = max(1, from-shownLines)
	}
	if to < len(lines) {
		out.After = to + 1
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
			{Name: "file-about", Title: "State", Width: "w7", Live: live, Load: func(v *visit) (any, error) {
				var now file
				err := v.get(path, &now)
				return now, err
			}},
			{Name: "file-open", Title: "Open in", Width: "w5", Load: func(v *visit) (any, error) { return v.openedBy(f) }},
			{Name: "file-text", Title: "Text", Width: "w7", Load: func(v *visit) (any, error) {
				from, err := v.whole("line")
				if err != nil {
					return nil, err
				}
				whole := f
				err = v.get(path+"?include_content=true", &whole)
				return whole.text(int(from)), err
			}},
			{Name: "file-chunks", Title: "Chunks", Width: "w5", Load: func(v *visit) (any, error) { return v.chunks(f) }},
		}})
}

// openedBy lists the agents of the folder that have the file open.
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
