package letta

import (
	"cmp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/server/rest"
)

// ToolSearch is a request for tools that match a query.
type ToolSearch struct {
	Query rest.Opt[string]   `json:"query,omitzero" doc:"All tools if absent or blank."`
	Mode  rest.Opt[string]   `json:"search_mode,omitzero" enum:"vector,fts,hybrid" doc:"hybrid if absent"`
	Types rest.Opt[[]string] `json:"tool_types,omitzero" doc:"Of these types."`
	Tags  rest.Opt[[]string] `json:"tags,omitzero" doc:"With one of these tags."`
	Limit rest.Opt[int]      `json:"limit,omitzero" minimum:"1" maximum:"100" doc:"50 if absent."`
}

// FoundTool is a tool that a search found.
type FoundTool struct {
	Tool        Tool    `json:"tool" doc:"As GET /v1/tools lists it."`
	Text        string  `json:"embedded_text" doc:"By which the tool was ranked."`
	Score       float64 `json:"combined_score" doc:"Of words and meaning; 0 without a query."`
	WordsRank   *int    `json:"fts_rank" doc:"From 1; null if it shares no word with the query."`
	MeaningRank *int    `json:"vector_rank" doc:"From 1; null if it was not ranked by meaning."`

	Explanation *rank.HitExplanation `json:"explain,omitempty" doc:"How it was ranked, with explain=true."`
}

// Found returns the tools that match the query, best first; without a query, all tools. rankTexts ranks the tools'
// texts. explain adds an explanation to each result.
func (q ToolSearch) Found(tools []Tool, explain bool,
	rankTexts func(query string, texts []string, arms rank.Arms) rank.Ranking) []FoundTool {
	if tags := q.Tags.Value; len(tags) > 0 {
		tools = slices.DeleteFunc(tools, func(t Tool) bool {
			return !slices.ContainsFunc(t.Tags, func(tag string) bool { return slices.Contains(tags, tag) })
		})
	}
	results, limit := []FoundTool{}, cmp.Or(q.Limit.Value, DefaultFound)
	texts := rest.Each(tools, Tool.text)
	query := strings.TrimSpace(q.Query.Value)
	if query == "" {
		for i, t := range tools[:min(len(tools), limit)] {
			results = append(results, FoundTool{Tool: t, Text: texts[i]})
		}
		return results
	}
	ranked := rankTexts(query, texts, rank.Arms{Words: q.Mode.Value != "vector", Meaning: q.Mode.Value != "fts"})
	for _, r := range ranked.Rows[:min(len(ranked.Rows), limit)] {
		results = append(results, FoundTool{Tool: tools[r.ID], Text: texts[r.ID], Score: r.Score,
			WordsRank: rankOf(r.WordsRank), MeaningRank: rankOf(r.MeaningRank)})
		if explain {
			results[len(results)-1].Explanation = ranked.ExplainHit(rank.Ranked{Key: r.ID, Text: texts[r.ID],
				Score: r.Score, Scale: 1})
		}
	}
	if explain && len(results) > 0 {
		results[0].Explanation.Search = ranked.Explanation()
	}
	return results
}

// rankOf returns a pointer to a rank; nil for 0.
func rankOf(rank int) *int {
	if rank == 0 {
		return nil
	}
	return &rank
}

// text returns the text that a search for tools ranks.
func (t Tool) text() string {
	return strings.TrimSpace(t.Name + "\n" + t.Description + "\n" + strings.Join(t.Tags, " "))
}
