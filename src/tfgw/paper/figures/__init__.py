"""The paper's figures, one file each: ``draw(experiment, series, records, data_dir)`` returns a matplotlib figure."""
