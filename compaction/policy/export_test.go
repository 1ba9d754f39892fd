package policy

// Cut returns where a hard truncation cuts messages with these tokens if room tokens fit.
func (s *HardTruncate) Cut(tokens []int, room int) int { return s.cut(tokens, room) }

var CharTokens = charTokens
