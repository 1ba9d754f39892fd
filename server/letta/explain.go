package letta

// Explained is the parameter of a search that asks how it ranked.
type Explained struct {
	Explain bool `query:"explain" doc:"Adds to each result how it was ranked, and to the first how the search ranked."`
}
