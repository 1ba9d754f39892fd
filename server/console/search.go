package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

func searchRoutes() map[string]handler { return map[string]handler{"GET search": searchLab} }

// found is a search result.
type found struct {
	Text, URL, Place string
	Words, Meaning   int // ranks, from 1; 0 for none
	Score            float64
}

// column holds the results of one way of ranking.
type column struct {
	Title   string
	Took    float64 // seconds; 0 if the column had no search of its own
	Hits    []found
	Problem string
	Note    string // why there are no results, if that is no failure
}

// lab is one search, ranked in several ways.
type lab struct {
	Query, In string
	Agent     agentChoice
	Columns   []column
	Note      string
	Grep      string // the answer of grep_files
}

// laboratories are the things that the search lab can search, in the order of the form.
var laboratories = []link{{"Messages", "messages"}, {"Archival memory", "passages"},
	{"All memories of an agent", "all"},
	{"Exact text in an agent's files", "grep"}}

func searchLab(v *visit) error {
	return v.show(page{Title: "Search lab", Tab: "Search lab", Sub: "One query, ranked by words, by meaning, and by both.",
		Cards: []card{{Name: "search-lab", Title: "Query", Width: "w12", Load: loaded(searchLabCard, search)}}})
}

func search(v *visit) (l lab, err error) {
	kind, err := v.oneOf("in", "messages", "passages", "all", "grep")
	if err != nil {
		return l, err
	}
	query := v.r.URL.Query()
	l = lab{Query: query.Get("q"), In: cmp.Or(kind, "messages")}
	if l.Agent, err = v.agentChoice(); err != nil || l.Query == "" || l.Agent.Problem != "" {
		return l, err
	}
	if (l.In == "all" || l.In == "grep") && l.Agent.ID == "" {
		if len(l.Agent.Newest) == 0 {
			l.Note = "There is no agent whose memories could be searched."
			return l, nil
		}
		l.Agent.ID, l.Agent.Text = l.Agent.Newest[0].ID, l.Agent.Newest[0].Name
	}
	switch l.In {
	case "passages":
		return l, v.searchPassages(&l)
	case "all":
		return l, v.searchAll(&l)
	case "grep":
		return l, v.grep(&l)
	}
	return l, v.searchMessages(&l)
}

// searchMessages searches messages in three ways: by words, by meaning, and by both.
func (v *visit) searchMessages(l *lab) error {
	for _, way := range []link{{"Words", "fts"}, {"Meaning", "vector"}, {"Fused", "hybrid"}} {
		body := map[string]any{"query": l.Query, "search_mode": way.URL, "limit": 10}
		if l.Agent.ID != "" {
			body["agent_id"] = l.Agent.ID
		}
		var hits []messageHit
		start := time.Now()
		err := v.send(http.MethodPost, "/v1/agents/messages/search", body, &hits)
		c := column{Title: way.Text, Took: time.Since(start).Seconds()}
		if status := statusOf(err); status > 0 && status < http.StatusInternalServerError {
			c.Problem = err.Error()
		} else if err != nil {
			return err
		}
		if way.URL == "vector" && c.Problem != "" { // without an embedding endpoint, which is no failure
			c.Problem, c.Note = "", c.Problem
		}
		for _, h := range hits {
			c.Hits = append(c.Hits, found{Text: h.Snippet, URL: h.Message.URL(), Score: h.Score,
				Place: h.Message.Role + ", seq " + number(h.Message.Seq), Words: rank(h.WordsRank), Meaning: rank(h.MeaningRank)})
		}
		if way.URL == "vector" && c.Note == "" && !slices.ContainsFunc(c.Hits, found.hasMeaning) {
			c.Hits, c.Note = nil, "Nothing is ranked by meaning: the endpoint does not answer, or made no vectors yet."
		}
		l.Columns = append(l.Columns, c)
	}
	return nil
}

// hasMeaning reports whether a result was ranked by meaning.
func (f found) hasMeaning() bool { return f.Meaning > 0 }

func rank(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// searchPassages searches archival memory once, and shows the ranks in the answer.
func (v *visit) searchPassages(l *lab) error {
	var hits []struct {
		Passage  passage `json:"passage"`
		Score    float64 `json:"score"`
		Metadata struct {
			Words   int `json:"fts_rank"`
			Meaning int `json:"vector_rank"`
		} `json:"metadata"`
	}
	body := map[string]any{"query": l.Query, "limit": 30}
	if l.Agent.ID != "" {
		body["agent_id"] = l.Agent.ID
	}
	start := time.Now()
	if err := v.send(http.MethodPost, "/v1/passages/search", body, &hits); err != nil {
		return err
	}
	fused := column{Title: "Fused", Took: time.Since(start).Seconds()}
	for _, h := range hits {
		fused.Hits = append(fused.Hits, found{Text: h.Passage.Text, URL: h.Passage.URL(), Score: h.Score,
			Words: h.Metadata.Words, Meaning: h.Metadata.Meaning})
	}
	l.Columns = []column{fused.by("Words", func(f found) int { return f.Words }),
		fused.by("Meaning", func(f found) int { return f.Meaning }), fused}
	return nil
}

// by returns the column sorted by a rank. Results without that rank are left out.
func (c column) by(title string, rank func(found) int) column {
	sorted := column{Title: title}
	for _, f := range c.Hits {
		if rank(f) > 0 {
			sorted.Hits = append(sorted.Hits, f)
		}
	}
	slices.SortStableFunc(sorted.Hits, func(a, b found) int { return cmp.Compare(rank(a), rank(b)) })
	return sorted
}

// searchAll searches everything that an agent remembers.
func (v *visit) searchAll(l *lab) error {
	var answer struct {
		Hits []struct {
			Kind  string  `json:"kind"`
			Text  string  `json:"text"`
			Score float64 `json:"score"`
			Place struct {
				Path string `json:"path"`
			} `json:"place"`
		} `json:"hits"`
		Ranking string `json:"ranking"`
		Known   string `json:"known_place"`
		Note    string `json:"note"`
	}
	start := time.Now()
	err := v.get("/v1/agents/"+url.PathEscape(l.Agent.ID)+"/memory-search?"+
		url.Values{"query": {l.Query}, "limit": {strconv.Itoa(20)}}.Encode(), &answer)
	if err != nil {
		return err
	}
	c := column{Title: "Ranked by " + answer.Ranking, Took: time.Since(start).Seconds()}
	for _, h := range answer.Hits {
		c.Hits = append(c.Hits, found{Text: h.Text, Place: h.Kind + " " + h.Place.Path, Score: h.Score})
	}
	l.Columns, l.Note = []column{c}, answer.Note
	return nil
}

// grep searches exact text in an agent's files, as the agent does.
func (v *visit) grep(l *lab) error {
	var answer struct {
		Status string `json:"status"`
		Return string `json:"func_return"`
	}
	err := v.send(http.MethodPost, "/v1/agents/"+url.PathEscape(l.Agent.ID)+"/tools/grep_files/run",
		map[string]any{"args": map[string]string{"pattern": l.Query}}, &answer)
	if status := statusOf(err); status > 0 && status < http.StatusInternalServerError {
		l.Note = err.Error()
		return nil
	}
	if answer.Status == "error" {
		l.Note = answer.Return
		return err
	}
	l.Grep = answer.Return
	return err
}
