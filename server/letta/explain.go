package letta

// Explained are the parameters of a search that ask for an explanation of the ranking, and set the weight of meaning.
type Explained struct {
	Explain bool    `query:"explain" doc:"Adds to each result how it was ranked, and to the first how the search ranked."`
	Weight  float64 `query:"weight" minimum:"0.05" maximum:"2" doc:"Of meaning here, in place of LOCI_EMBEDDING_WEIGHT."`
}

// Narrowed is the parameter that narrows a search.
type Narrowed struct {
	Filter string `query:"filter" doc:"Only what fits, as JSON of the schema Filter, such as {\"metadata.food\": \"sushi\"}."` //nolint:lll // a tag is one line
}

// Ordered is the parameter that orders the results of a search.
type Ordered struct {
	OrderBy string `query:"order_by" enum:"relevance,time" doc:"time: the newest first; after is valid while rows are added."` //nolint:lll // a tag is one line
}

// ByTime reports whether the results are ordered by time.
func (o Ordered) ByTime() bool { return o.OrderBy == byTime }

const byTime = "time"

// SearchMode is the parameter that selects how a search ranks.
type SearchMode struct {
	Mode string `query:"search_mode" enum:"vector,fts,hybrid" doc:"By meaning, words or both; hybrid if absent."`
}
