package rank

// Judging returns a ranking for a question, with a reranker for its best rows.
func Judging(r *Reranker, question string) Ranking {
	return Ranking{text: question, judged: &judgement{reranker: r}}
}

// Judged returns what the reranker of a ranking did.
func (r Ranking) Judged() *ExplainedRerank { return r.judged.explained() }
