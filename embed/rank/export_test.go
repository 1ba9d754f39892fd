package rank

// Judging returns the ranking of a question whose best rows a reranker judges.
func Judging(r *Reranker, question string) Ranking {
	return Ranking{text: question, judged: &judgement{reranker: r}}
}

// Judged returns what the reranker of a ranking did.
func (r Ranking) Judged() *ExplainedRerank { return r.judged.explained() }
