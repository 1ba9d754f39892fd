package files

// mapped returns fn of each item of a list.
func mapped[T, U any](list []T, fn func(T) U) []U {
	all := make([]U, len(list))
	for i, item := range list {
		all[i] = fn(item)
	}
	return all
}
