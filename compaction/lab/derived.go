package lab

import (
	"bytes"
	"encoding/json"
)

// MarshalJSON adds what follows from the results.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		plain
		Advice   []Advice  `json:"advice"`
		Equal    []Equal   `json:"equal"`
		Scores   []Score   `json:"answer_scores,omitempty"`
		Meanings []Meaning `json:"meanings"`
	}{plain(r), append([]Advice{}, r.Advise()...), append([]Equal{}, r.Equals()...), r.Scores(), Meanings()})
	return b.Bytes(), err
}
