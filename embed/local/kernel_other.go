package local

func best() *kernel { return oracle }
