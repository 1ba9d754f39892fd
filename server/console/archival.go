package console

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

func archivalRoutes() map[string]handler {
	return map[string]handler{
		"GET archival":                                      archivalHome,
		"GET archives/{archive}":                            archivePage,
		"POST archives/{archive}/passages":                  insertPassage,
		"POST archives/{archive}/passages/{passage}/delete": deletePassage,
	}
}

// archive is an archive in the API's form.
type archive struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// URL is the address of the archive's page.
func (a archive) URL() string { return base + "archives/" + a.ID }

// passage is a passage of an archive.
type passage struct {
	ID        string    `json:"id"`
	ArchiveID string    `json:"archive_id"`
	Text      string    `json:"text"`
	Tags      []string  `json:"tags"`
	Ended     bool      `json:"ended"`
	CreatedAt time.Time `json:"created_at"`
}

// URL is the address of the page of the passage's archive.
func (p passage) URL() string { return base + "archives/" + p.ArchiveID }

func archivalHome(v *visit) error {
	return v.show(page{Title: "Archival", Tab: "Archival", Sub: "Facts that agents keep for good.", Cards: []card{
		{Name: "archival-archives", Title: "Archives", Width: "w12", Load: loaded(archivalArchivesCard,
			func(v *visit) (list[archive], error) {
				return paged(v, "/v1/archives", url.Values{"order": {"desc"}}, func(a archive) string { return a.ID })
			})},
	}})
}

// archiveView shows what an archive holds.
type archiveView struct {
	Archive  archive
	Passages []passage
	Query    string
	Tags     string
	All      bool // passages must have all tags
}

func archivePage(v *visit) error {
	var a archive
	if err := v.get("/v1/archives/"+v.id("archive"), &a); err != nil {
		return err
	}
	return v.show(page{Title: a.Name, Tab: "Archival", Crumbs: []link{{"Archival", base + "archival"}}, Sub: a.Description,
		Cards: []card{
			{Name: "archive-passages", Title: "Passages", Width: "w8", Load: loaded(archivePassagesCard,
				func(v *visit) (archiveView, error) { return v.archive(a) })},
			{Name: "archive-agents", Title: "Agents that have it", Width: "w4", Load: loaded(archiveAgentsCard,
				func(v *visit) (agents []agent, err error) {
					return agents, v.get("/v1/archives/"+v.id("archive")+"/agents?limit=100", &agents)
				})},
		}})
}

// archive searches an archive or, without a query, lists its newest passages.
func (v *visit) archive(a archive) (view archiveView, err error) {
	match, err := v.oneOf("match", "any", "all")
	if err != nil {
		return view, err
	}
	query := v.r.URL.Query()
	view = archiveView{Archive: a, Query: query.Get("q"), Tags: query.Get("tags"), All: match == "all"}
	body := map[string]any{"archive_id": a.ID, "limit": pageSize, "ended": true}
	if view.Query != "" {
		body["query"] = view.Query
	}
	if tags := splitTags(view.Tags); len(tags) > 0 {
		body["tags"], body["tag_match_mode"] = tags, "any"
		if view.All {
			body["tag_match_mode"] = "all"
		}
	}
	var hits []struct{ Passage passage }
	err = v.send(http.MethodPost, "/v1/passages/search", body, &hits)
	for _, h := range hits {
		view.Passages = append(view.Passages, h.Passage)
	}
	return view, err
}

// splitTags splits a list of tags at commas.
func splitTags(text string) (tags []string) {
	for tag := range strings.SplitSeq(text, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}

func insertPassage(v *visit) error {
	body := map[string]any{"text": newlines.Replace(v.r.PostFormValue("text"))}
	if tags := splitTags(v.r.PostFormValue("tags")); len(tags) > 0 {
		body["tags"] = tags
	}
	if err := v.send(http.MethodPost, "/v1/archives/"+v.id("archive")+"/passages", body, nil); err != nil {
		return err
	}
	return v.done(base+"archives/"+v.id("archive"), "created")
}

func deletePassage(v *visit) error {
	path := "/v1/archives/" + v.id("archive") + "/passages/" + v.id("passage")
	if err := v.send(http.MethodDelete, path, nil, nil); err != nil {
		return err
	}
	return v.done(base+"archives/"+v.id("archive"), "deleted")
}
