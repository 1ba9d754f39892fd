package db

// Waiting returns how many wait.
func (s *Shares) Waiting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.orgs {
		n += len(of.waiting)
	}
	return n
}
