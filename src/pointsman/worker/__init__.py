"""Workers repeat: they take tasks, keep their leases while somebody works, and give back what is left"""
