package lab

// TokensBefore returns the tokens of the messages before an index.
func (s *Session) TokensBefore(index int) (n int) {
	for _, m := range s.messages[:index] {
		n += m.Tokens
	}
	return n
}

// Agreement is agreement.
func Agreement(answer, other string) float64 { return agreement(answer, other) }
