"""Who holds which data: data sets, tables, tasks, features and how examples are partitioned."""
